"""Kinds of values that a user may set: what of a text, a number or a switch is taken, by readers.

A reader gives the value, or None for what is none of its kind. Knows nothing of keys and options. Invariant: no value
that is taken is None.
"""

from collections.abc import Callable

NONE = "none"
"""No value, where somebody must say so."""

Reader = Callable[[object], object | None]


def text(value: object) -> str | None:
    """Any text but the empty one."""
    return value if isinstance(value, str) and value else None


def switch(value: object) -> bool | None:
    """True or false."""
    return value if isinstance(value, bool) else None


def whole(least: int, most: int) -> Reader:
    """A reader of a whole number, both ends included."""
    return lambda value: value if type(value) is int and least <= value <= most else None


def one_of(*words: str) -> Reader:
    """A reader of one of `words`; a number in the file stands for its digits."""
    return lambda value: str(value) if not isinstance(value, bool) and str(value) in words else None


def or_none(read: Reader) -> Reader:
    """A reader of the word NONE, too: for a value that may be taken back."""
    return lambda value: NONE if value == NONE else read(value)


def typed(value: str, read: Reader) -> object:
    """What the text of a variable or an option would be in the settings file: text, a number or a switch, whichever
    the reader takes."""
    meant: list[object] = [value]
    if value.isascii() and value.isdigit() and len(value) < 20:
        meant += [int(value), {0: False, 1: True}.get(int(value))]
    meant.append(_SWITCHES.get(value.lower()))
    return next((one for one in meant if one is not None and read(one) is not None), value)


_SWITCHES = {"true": True, "yes": True, "false": False, "no": False}
