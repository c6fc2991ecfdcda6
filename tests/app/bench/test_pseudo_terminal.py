"""A program in a pseudo terminal: what it paints, when, and that it ends with its terminal."""

import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.bench.pseudo_terminal import PseudoTerminal
from app.errors import EngineUnreachableError


def run(folder: Path, code: str, clock: Callable[[], float] = time.perf_counter) -> PseudoTerminal:
    return PseudoTerminal([sys.executable, "-c", code], folder, os.environ, clock)


def test_keys_go_in_and_paint_comes_out_without_escape_sequences(tmp_path: Path) -> None:
    code = (
        "import sys, os; os.write(1, b'\\x1b[1;31mgo\\x1b[0m\\x1b]0;title\\x07 ')\n"
        "word = input(); os.write(1, f'<\\x1b[38;2;1;2;3m{word}>ż'.encode()); input()"
    )
    ui = run(tmp_path, code)
    try:
        started = ui.until("go ", 0, 60)
        since = len(ui.text)
        ui.send("größe\r")
        painted = ui.until("<größe>ż", since, 60)
        assert ui.started <= started <= painted
        assert "\x1b" not in ui.text and "title" not in ui.text
    finally:
        ui.close()
    with pytest.raises(ProcessLookupError):
        os.kill(ui.pid, 0)


def test_a_sequence_or_letter_cut_in_two_is_put_together(tmp_path: Path) -> None:
    code = (
        "import os, tty; tty.setraw(0)  # no echo between the parts\n"
        "for part in (b'a\\x1b[38;5', b';9mb\\xc3', b'\\xa4', b'c'):\n    os.write(1, part); os.read(0, 1)\n"
        "os.write(1, b'end'); os.read(0, 1)"
    )
    ui = run(tmp_path, code)
    try:
        for _ in range(4):
            ui.read(60)
            ui.send("\r")
        ui.until("end", 0, 60)
        assert ui.text == "abäcend"
    finally:
        ui.close()


def test_what_is_not_painted_in_time_is_said(tmp_path: Path) -> None:
    ticks = itertools.count()
    ui = run(tmp_path, "print('here', flush=True); input()", lambda: float(next(ticks)))
    try:
        with pytest.raises(EngineUnreachableError, match="did not show 'there' within 5 s"):
            ui.until("there", 0, 5)
    finally:
        ui.close()


def test_a_program_that_ends_is_said(tmp_path: Path) -> None:
    ui = run(tmp_path, "print('bye', flush=True)")
    try:
        with pytest.raises(EngineUnreachableError, match=r"ended by itself; it last showed: .*bye"):
            ui.until("more", 0, 60)
    finally:
        ui.close()


def test_a_program_that_will_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.bench.pseudo_terminal._LEFT_TIME_S", 0.1)
    stubborn = (
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 15)]; print('here', flush=True); signal.pause()"
    )
    ui = run(tmp_path, stubborn)
    ui.until("here", 0, 60)
    ui.close()
    with pytest.raises(ProcessLookupError):
        os.kill(ui.pid, 0)
