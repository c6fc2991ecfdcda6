"""Copying: the file always has it, the terminal is asked in the way it may understand."""

import base64
import re
import stat
from pathlib import Path

import pytest

from app.editing.clipboard import MOST_SENT, copy_text
from app.errors import SettingsError
from app.paths import state_dir


def test_the_file_and_the_sequence_have_the_text() -> None:
    sent: list[str] = []
    copied = copy_text("größe = 1\n", sent.append, {})
    assert copied.sent and copied.path.read_text("utf-8") == "größe = 1\n"
    assert stat.S_IMODE(copied.path.stat().st_mode) == 0o600
    (sequence,) = sent
    match = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", sequence)
    assert match is not None and base64.b64decode(match[1]).decode() == "größe = 1\n"


def test_in_tmux_both_ways_are_tried() -> None:
    sent: list[str] = []
    copy_text("x", sent.append, {"TMUX": "/tmp/tmux-0/default,1,0"})
    plain = "\x1b]52;c;eA==\x07"
    assert sent == [plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"]


def test_text_that_would_escape_stays_inside() -> None:
    sent: list[str] = []
    copy_text("\x07\x1b]0;title\x07", sent.append, {})
    assert sent[0].count("\x1b") == 1 and sent[0].count("\x07") == 1


def test_too_long_for_a_terminal_goes_to_the_file_alone() -> None:
    sent: list[str] = []
    copied = copy_text("x" * (MOST_SENT + 1), sent.append, {})
    assert not copied.sent and sent == []
    assert copied.path.stat().st_size == MOST_SENT + 1


def test_bytes_that_are_no_text_come_back(tmp_path: Path) -> None:
    name = b"\xff".decode("utf-8", "surrogateescape")
    assert copy_text(name, lambda _: None, {}).path.read_bytes() == b"\xff"


def test_nothing_is_sent_when_the_file_cannot_be_written() -> None:
    sent: list[str] = []
    state_dir().parent.mkdir(parents=True)
    state_dir().write_text("")
    with pytest.raises(SettingsError):
        copy_text("x", sent.append, {})
    assert sent == []
