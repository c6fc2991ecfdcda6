"""Whether two models speak the same tokens, so that one may draft for the other.

Compares what ids stand for; how text is cut into them does not matter, since a draft is made of ids. Invariant: below
the number returned every id stands for the same bytes to both; ids from there on exist in one of them only, as padding
of an embedding or tokens added later, and are never drafted.
"""

from editor_engine.errors import UnsupportedModelError
from editor_engine.text.tokenizer import Tokenizer


def refuse_other_vocabulary(target_name: str, target: Tokenizer, draft_name: str, draft: Tokenizer) -> int:
    """How many ids, from 0, the two share. Raises UnsupportedModelError naming the first that differs."""
    shared = min(target.vocab_size, draft.vocab_size)
    if target.spells_as(draft):  # the usual case; a walk over 152,000 ids takes a second
        return shared
    for token_id in range(shared):
        ours, theirs = target.spelling(token_id), draft.spelling(token_id)
        if ours != theirs:
            raise UnsupportedModelError(
                f"{draft_name} cannot draft for {target_name}: their vocabularies differ. Token {token_id} is "
                f"{_shown(ours)} to {target_name} and {_shown(theirs)} to {draft_name}; take a smaller model of the "
                "same family."
            )
    return shared


def _shown(spelling: bytes) -> str:
    """Control characters and bytes that are no text escaped."""
    try:
        return repr(spelling.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(spelling)
