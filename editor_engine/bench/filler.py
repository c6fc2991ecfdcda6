"""Text of the benchmark's own, of any length, for figures that depend on the number of tokens and not on what they say.

Source code of the ordinary kind, made by counting through word lists. Invariant: no chance and no clock; the text of a
greater length starts with that of a smaller one.
"""

from collections.abc import Callable, Iterator
from itertools import count, islice

_VERBS = ("load", "merge", "count", "split", "check", "store", "rank", "trim", "group", "scan", "send")
_NOUNS = ("order", "parcel", "ledger", "shelf", "route", "ticket", "batch", "sample", "region", "entry", "signal")
_KINDS = ("names", "prices", "weights", "limits", "flags")


def _function(number: int) -> str:
    verb, noun, kind = (words[number % len(words)] for words in (_VERBS, _NOUNS, _KINDS))
    other = _NOUNS[(3 * number + 1) % len(_NOUNS)]
    return (
        f"def {verb}_{noun}_{number}({noun}, {kind}, limit={number * 7 % 100}):\n"
        f'    """{verb.capitalize()} each {noun} by its {kind}, at most limit of them."""\n'
        f"    {other}s = []\n"
        f"    for index, value in enumerate({kind}):\n"
        f"        if index >= limit or value is None:\n"
        f"            continue\n"
        f"        {other}s.append(({noun}.{kind}[index], value + {number % 13}))\n"
        f"    return sorted({other}s, reverse={number % 2 == 0})\n\n\n"
    )


def functions() -> Iterator[str]:
    """One function after the other, without end."""
    return map(_function, count())


def filler_tokens(tokens: int, encode: Callable[[str], list[int]]) -> list[int]:
    """Exactly `tokens` token ids of such text (at least 1)."""
    pieces = functions()
    ids: list[int] = []
    while len(ids) < tokens:
        ids += encode("".join(islice(pieces, 8)))
    return ids[:tokens]


def filler_text(tokens: int, encode: Callable[[str], list[int]]) -> str:
    """Whole functions that together reach `tokens` tokens, the last one passing it by at most its own length."""
    pieces = functions()
    text = next(pieces)
    while len(encode(text)) < tokens:
        text += next(pieces)
    return text
