"""Turns token ids into text as they arrive.

Knows how tokens spell bytes; knows nothing of where they came from. Invariant: what `feed` and `finish` gave, joined,
equals decoding all the ids at once, bytes that are no UTF-8 included.
"""

import codecs

from editor_engine.text.tokenizer import Tokenizer


class Detokeniser:
    """The text of one reply. Not for use by two threads at once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        """Text that is complete now; a character whose last bytes are still to come is held back.

        Raises RequestError for an id that is not in the vocabulary.
        """
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was held back, as U+FFFD when it is no whole character; the next `feed` starts a new text."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
