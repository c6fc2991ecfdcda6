"""What can be read and said of a file before anything is asked: the prompt up to the instruction, and the tokens.

Knows nothing of engines or terminals. Invariant: the request only prefills, and its prompt is the edit's own up to the
instruction, so that whatever is asked next finds the file in the cache.
"""

from app.editing.document import Document
from app.editing.language import detect_language
from app.editing.prompt import Budget, build_prompt
from app.editing.region import Region
from editor_engine.requests import CompletionRequest

_CHARACTERS_A_TOKEN = 4
"""Of an instruction in plain words, roughly."""


def warm_request(document: Document) -> CompletionRequest:
    """The prompt of a whole-file edit with no instruction yet, to be prefilled."""
    language = detect_language(document.name, document.lines[0])
    return build_prompt(document.lines, "", language).request(0)


def estimate(
    document: Document,
    counted: tuple[int, int],
    instruction: str,
    region: Region | None,
    cached: int,
) -> Budget:
    """The tokens an edit will still read and write, about: the file's are counted, the instruction's guessed.

    `counted`: prompt and source tokens of the warm request; `cached`: prompt tokens that are read already. A region's
    share of the file is taken by characters.
    """
    prompt = counted[0] + len(instruction) // _CHARACTERS_A_TOKEN
    expected = counted[1]
    if region is not None:
        inside = sum(len(line) + 1 for line in document.lines[region.first - 1 : region.last])
        expected = -(-expected * inside // sum(len(line) + 1 for line in document.lines))
    return Budget(max(0, prompt - cached), expected, None, estimated=True)
