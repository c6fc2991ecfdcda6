"""Workload `ui`: how soon the terminal UI shows and answers, while a real engine decodes beside it.

Runs the program itself in a pseudo terminal, as a user would, and times what it paints. A key is timed by typing a
character that is nowhere else into the instruction box. Invariant: every figure is taken from outside the program, its
own start included.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.bench.pseudo_terminal import PseudoTerminal
from app.errors import EngineUnreachableError
from app.json_process import COMMAND
from editor_engine.bench.measure import Spread
from editor_engine.machine import peak_bytes_of

KEY_EVERY_S = 0.08
"""Between two keys: a fast typist."""
LONG_LINES, LONG_LINE = 2000, 10_000
"""Lines of the long file, and characters of its longest line."""
JUMPS = 20
"""Times the long file is jumped through."""
_F5, _F6, _END, _HOME, _ESCAPE = "\x1b[15~", "\x1b[17~", "\x1b[F", "\x1b[H", "\x1b"
_STRANGE = [chr(code) for code in range(0x100, 0x180)]
"""Letters that are in no file of the benchmark: each shows when it is painted."""
_PATIENCE_S = 300.0


@dataclass
class UiFigures:
    """What was measured, over all runs."""

    visible_s: list[float] = field(default_factory=list)
    """From the start of the command to the file on the screen."""
    keys_ms: list[float] = field(default_factory=list)
    """From a key to its character on the screen, while the engine reads and writes."""
    first_hunk_s: list[float] = field(default_factory=list)
    """From enter to the first hunk that can be decided."""
    whole_s: list[float] = field(default_factory=list)
    """From enter to the whole proposal."""
    escape_ms: list[float] = field(default_factory=list)
    """From escape to the screen saying that the engine is idle; Textual waits 100 ms of it for the rest of a key."""
    updates_per_s: list[float] = field(default_factory=list)
    """Repaints of the status line while the engine writes."""
    ui_bytes: list[float] = field(default_factory=list)
    """Peak memory of the UI's own process."""
    engine_bytes: list[float] = field(default_factory=list)
    """Peak memory of the processes it started."""
    long_visible_s: list[float] = field(default_factory=list)
    long_keys_ms: list[float] = field(default_factory=list)
    """As `keys_ms`, with the long file open and being read by the engine."""
    long_jumps_ms: list[float] = field(default_factory=list)
    """From end or home to the last or first line on the screen."""

    def fields(self) -> dict[str, object]:
        """The figures in the machine interface."""
        return {name: _fields(values) for name, values in vars(self).items() if values}

    def table(self) -> str:
        """The figures for people."""
        rows = [
            ("file visible, s", _words(self.visible_s, 2)),
            ("key to paint while the engine works, ms", _tail(self.keys_ms)),
            ("first reviewable hunk after enter, s", _words(self.first_hunk_s, 2)),
            ("whole proposal after enter, s", _words(self.whole_s, 2)),
            ("escape to idle engine, ms", _words(self.escape_ms, 0)),
            ("updates a second", _words(self.updates_per_s, 1)),
            ("peak memory of the UI, MB", _words([value / 1e6 for value in self.ui_bytes], 0)),
            ("peak memory of the engine, MB", _words([value / 1e6 for value in self.engine_bytes], 0)),
            (f"{LONG_LINES} lines, one of {LONG_LINE} characters: visible, s", _words(self.long_visible_s, 2)),
            ("  key to paint, ms", _tail(self.long_keys_ms)),
            ("  jump from end to end, ms", _tail(self.long_jumps_ms)),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {words}" for name, words in rows if words)


def measure_ui(
    options: Sequence[str],
    text: str,
    instruction: str,
    folder: Path,
    repeats: int,
    clock: Callable[[], float],
    progress: Callable[[str], None],
) -> UiFigures:
    """`options` of `redraft [FILE]`; `text` and `instruction` are the edit, whose file is written into `folder`.

    Raises EngineUnreachableError when the program does not do what it should.
    """
    (folder / "edited.py").write_text(text, "utf-8")
    (folder / "long.py").write_text(long_text(), "utf-8")
    figures = UiFigures()
    progress("a start that is not counted: the program's bytecode is written, as an installation has it")
    with _program([*options, "edited.py"], folder, clock) as ui:
        ui.until(" ready ", 0, _PATIENCE_S)
    for run in range(1, repeats + 1):
        progress(f"run {run} of {repeats}: an edit")
        with _program([*options, "edited.py"], folder, clock) as ui:
            _edit(ui, text, instruction, figures)
        progress(f"run {run} of {repeats}: a long file")
        with _program([*options, "long.py"], folder, clock) as ui:
            _long_file(ui, figures)
    return figures


def long_text() -> str:
    """A file of many lines, the third of which is very long."""
    lines = [f"value_{number:04} = {number}" for number in range(LONG_LINES)]
    lines[2] = ("wide = '" + "0123456789" * (LONG_LINE // 10))[: LONG_LINE - 1] + "'"
    return "\n".join(lines) + "\n"


@contextmanager
def _program(arguments: Sequence[str], folder: Path, clock: Callable[[], float]) -> Iterator[PseudoTerminal]:
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environment["XDG_STATE_HOME"] = str(folder / "state")  # neither history nor sessions of the user's
    # Where Python may keep no bytecode, each start compiles the program again: 0.3 s that no installed one takes.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    ui = PseudoTerminal([*COMMAND, *arguments], folder, environment, clock)
    try:
        yield ui
    finally:
        ui.close()


def _edit(ui: PseudoTerminal, text: str, instruction: str, figures: UiFigures) -> None:
    figures.visible_s.append(ui.until(text.partition("\n")[0][:30], 0, _PATIENCE_S) - ui.started)
    ui.until(" ready ", 0, _PATIENCE_S)
    ui.send(instruction)
    ui.idle(1.0)
    since = len(ui.text)
    entered = ui.send("\r")
    writing = ui.until("writing", since, _PATIENCE_S)
    begun = ui.text.index("writing", since)
    for letter in _STRANGE:
        if _ended(ui, begun):
            break
        figures.keys_ms += _key(ui, letter, begun)
        ui.idle(KEY_EVERY_S)
    while not _ended(ui, begun):
        ui.read(_PATIENCE_S)
    if "hunk 1 of" not in ui.text[since:]:
        raise EngineUnreachableError("The model proposed no change, so there is no review to time; take a larger one.")
    done = ui.until("review", begun, _PATIENCE_S)
    figures.first_hunk_s.append(ui.until("hunk 1 of", since, _PATIENCE_S) - entered)
    figures.whole_s.append(done - entered)
    written = ui.text[begun : ui.text.index("review", begun)]
    figures.updates_per_s.append(written.count("tok/s") / max(done - writing, 1e-9))
    since = len(ui.text)
    ui.send(_F5)
    ui.until("writing", since, _PATIENCE_S)
    since = len(ui.text)
    pressed = ui.send(_ESCAPE)
    figures.escape_ms.append((ui.until(" ready ", since, _PATIENCE_S) - pressed) * 1000)
    figures.ui_bytes.append(peak_bytes_of(ui.pid) or 0)
    figures.engine_bytes.append(sum(peak_bytes_of(pid) or 0 for pid in _children(ui.pid)))


def _long_file(ui: PseudoTerminal, figures: UiFigures) -> None:
    figures.long_visible_s.append(ui.until("value_0001", 0, _PATIENCE_S) - ui.started)
    ui.until("exact", 0, _PATIENCE_S)  # the engine is loaded, and begins to read the file
    for letter in _STRANGE[:50]:
        figures.long_keys_ms += _key(ui, letter)
        ui.idle(KEY_EVERY_S)
    ui.send(_F6)
    ui.idle(0.5)
    for number in range(JUMPS):
        key, words = (_END, f"value_{LONG_LINES - 1:04}") if number % 2 == 0 else (_HOME, "value_0001")
        since = len(ui.text)
        pressed = ui.send(key)
        figures.long_jumps_ms.append((ui.until(words, since, _PATIENCE_S) - pressed) * 1000)
        ui.idle(KEY_EVERY_S)


def _ended(ui: PseudoTerminal, since: int) -> bool:
    """The run that began at the offset `since` has ended, with a proposal or without."""
    return re.search(r"\s(review|ready)\s", ui.text[since:]) is not None


def _key(ui: PseudoTerminal, letter: str, run: int | None = None) -> list[float]:
    """Milliseconds from a key to its letter; none when the run (its offset) ended first and the key went elsewhere."""
    since = len(ui.text)
    pressed = ui.send(letter)
    while letter not in ui.text[since:]:
        if run is not None and _ended(ui, run):
            return []
        if not ui.read(_PATIENCE_S):
            raise EngineUnreachableError("The terminal UI does not paint what is typed.")
    return [(ui.until(letter, since, _PATIENCE_S) - pressed) * 1000]


def _children(pid: int) -> list[int]:
    """Processes that a process has started, and those they have."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []
    return [*direct, *(below for child in direct for below in _children(child))]


def _fields(values: Sequence[float]) -> dict[str, float | int]:
    spread = Spread(tuple(values))
    return {**spread.fields(), "p99": spread.percentile(0.99)}


def _words(values: Sequence[float], digits: int) -> str:
    return Spread(tuple(values)).words(digits) if values else ""


def _tail(values: Sequence[float]) -> str:
    if not values:
        return ""
    spread = Spread(tuple(values))
    p99 = spread.percentile(0.99)
    return f"median {spread.median:.0f}, 99th percentile {p99:.0f}, most {max(values):.0f} ({len(values)} keys)"
