"""Kinds of values that a user may set: what of a text, a number or a switch is taken, by readers.

A reader gives the value, or None for what is none of its kind. Knows nothing of keys and options. Invariant: no value
that is taken is None.
"""

from collections.abc import Callable

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


def typed(value: str, read: Reader) -> object:
    """What the text of a variable or an option would be in the settings file: a number, a switch, else text."""
    if read is text:
        return value
    number: object = value
    if value.isascii() and value.isdigit() and len(value) < 20:
        number = int(value)
    if read is switch:
        return bool(number) if number in (0, 1) else _SWITCHES.get(value.lower(), value)
    return number


_SWITCHES = {"true": True, "yes": True, "false": False, "no": False}
