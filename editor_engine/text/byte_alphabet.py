"""The printable alphabet in which byte-level vocabularies spell bytes, and the way back; likewise for spaced ones.

Knows nothing of merges or models. Invariant: a bijection between the 256 byte values and 256 characters, so any bytes
can be spelt and any spelling read back. The alphabet is GPT-2's: printable Latin-1 characters stand for themselves, the
other bytes, in order, for U+0100 and up.
"""

import re


def _alphabet() -> tuple[str, ...]:
    """Character of each byte value, 0 to 255."""
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in itself else next(spare)) for byte in range(256))


CHARACTER_OF_BYTE = _alphabet()
"""Indexed by byte value."""

BYTE_OF_CHARACTER = {character: byte for byte, character in enumerate(CHARACTER_OF_BYTE)}
"""The inverse of `CHARACTER_OF_BYTE`."""


def spelt_bytes(spelling: str) -> bytes | None:
    """Bytes that a vocabulary entry spells; None when it has a character outside the alphabet."""
    try:
        return bytes([BYTE_OF_CHARACTER[character] for character in spelling])
    except KeyError:
        return None


SPACE = "\u2581"
"""What vocabularies of the sentencepiece kind write for a space."""

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def spaced_bytes(spelling: str) -> bytes:
    """Bytes that an entry of the sentencepiece kind stands for: `<0x0A>` one byte, else text, SPACE being a space."""
    byte = _BYTE.fullmatch(spelling)
    return bytes([int(byte[1], 16)]) if byte else spelling.replace(SPACE, " ").encode("utf-8")
