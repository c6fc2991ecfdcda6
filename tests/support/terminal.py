"""A program in a pseudo terminal: keys in, and what it painted out, until something is seen.

Knows nothing of what is tested. Invariant: the program is gone when the context is left, whatever happened.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 60.0
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^][^\x1b]*\x1b\\|[()][0-9A-B]|.)")


@dataclass
class Terminal:
    """The terminal's side of a running program."""

    process: subprocess.Popen[bytes]
    master: int
    painted: bytes = b""
    """All it wrote, in order."""

    @property
    def text(self) -> str:
        """What it painted without the sequences, in the order it was painted."""
        return _SEQUENCE.sub(b"", self.painted).decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        """Send keys as a terminal would."""
        os.write(self.master, keys.encode())

    def until(self, text: str) -> None:
        """Wait until a text was painted."""
        self._read(lambda: text in self.text)

    def hang_up(self) -> None:
        """Close the terminal under the program, without a signal."""
        os.close(self.master)
        self.master = -1

    def end(self) -> int:
        """Wait for the end; the exit code."""
        self._read(lambda: self.process.poll() is not None)
        return self.process.wait()

    def _read(self, seen: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _PATIENCE_S
        while not seen():
            assert time.monotonic() < give_up, f"never came; painted: {self.text[-2000:]}"
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.painted += os.read(self.master, 1 << 16)
                except OSError:  # the program has closed its side
                    self.process.wait(timeout=_PATIENCE_S)


@contextmanager
def in_terminal(arguments: Sequence[str], folder: Path, size: tuple[int, int] = (100, 30)) -> Iterator[Terminal]:
    """Run `redraft` with arguments in a terminal of `size` (columns, lines)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    start = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from app.start import main; sys.exit(main())"
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if terminal.master >= 0:
            os.close(master)
