"""Hidden characters: those that a change adds, and no others."""

import pytest

from app.editing.diff import Hunk, make_hunks
from app.editing.document import open_bytes
from app.editing.hidden import HiddenCharacter, added_hidden
from app.editing.result import make_result


def hunk_of_change(old: str, new: str) -> Hunk:
    document = open_bytes(f"first\n{old}\n".encode(), "x")
    (hunk,) = make_hunks(make_result(document, f"first\n{new}\n"))
    return hunk


@pytest.mark.parametrize(
    ("char", "name"),
    [
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE (U+202E)"),
        ("\u200b", "ZERO WIDTH SPACE (U+200B)"),
        ("\ufeff", "ZERO WIDTH NO-BREAK SPACE (U+FEFF)"),
        ("\u2066", "LEFT-TO-RIGHT ISOLATE (U+2066)"),
        ("\u3164", "HANGUL FILLER (U+3164)"),
        ("\x1b", "U+001B"),
    ],
)
def test_an_added_one_is_named(char: str, name: str) -> None:
    assert added_hidden(hunk_of_change("a = 1", f"a{char} = 2")) == (HiddenCharacter(2, 1, name),)
    assert added_hidden(hunk_of_change(f"a{char} = 1", f"a{char} = 2")) == ()
    assert len(added_hidden(hunk_of_change(f"a{char} = 1", f"a{char}{char} = 2"))) == 1


@pytest.mark.parametrize("text", ["\ta = 1", "日本 = 'é'", "x = '👍'", "plain"])
def test_what_can_be_seen_is_not(text: str) -> None:
    assert added_hidden(hunk_of_change("a = 1", text)) == ()
