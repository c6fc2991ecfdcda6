"""A program in a pseudo terminal: keys go in, and every byte it paints comes out with the time it came.

Knows nothing of the program. Invariant: a time is taken when the bytes are read, never when they are looked at, and the
program has ended when the terminal is closed.
"""

import codecs
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.errors import EngineUnreachableError

_ESCAPES = re.compile(
    r"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_].*?\x1b\\|\x1b.", re.DOTALL
)
_UNFINISHED = re.compile(r"\x1b[^@-~]*$|\x1b\[[0-9;?<>=]*$")
_LEFT_TIME_S = 10.0
"""How long the program may take to end when its terminal is taken away."""


class PseudoTerminal:
    """One running program."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        clock: Callable[[], float],
        size: tuple[int, int] = (120, 40),
    ) -> None:
        self._clock = clock
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._ends: list[tuple[int, float]] = []
        self.text = ""
        """Everything painted so far, without escape sequences."""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.started = clock()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environment),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        finally:
            os.close(slave)

    @property
    def pid(self) -> int:
        """The program's process."""
        return self._process.pid

    def send(self, keys: str) -> float:
        """Press keys; the time at which they were written."""
        now = self._clock()
        os.write(self._master, keys.encode("utf-8"))
        return now

    def read(self, seconds: float) -> bool:
        """Take what has been painted, waiting for something at most so long; False when nothing came."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other end is closed: the program has ended
            data = b""
        now = self._clock()
        if not data:
            raise EngineUnreachableError(f"The terminal UI ended by itself; it last showed: {self.text[-200:]!r}")
        found = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(found)
        cut = len(found) if unfinished is None else unfinished.start()
        self._rest = found[cut:]
        self.text += _ESCAPES.sub("", found[:cut])
        self._ends.append((len(self.text), now))
        return True

    def until(self, words: str, since: int, seconds: float) -> float:
        """The time at which `words` were painted, looked for from the offset `since` of `text`.

        Raises EngineUnreachableError when they are not painted in time.
        """
        deadline = self._clock() + seconds
        while (at := self.text.find(words, since)) < 0:
            left = deadline - self._clock()
            if left <= 0 or not self.read(left):
                raise EngineUnreachableError(
                    f"The terminal UI did not show {words!r} within {seconds:.0f} s; last: {self.text[-200:]!r}"
                )
        return next(time for end, time in self._ends if end >= at + len(words))

    def idle(self, seconds: float) -> None:
        """Let so much time pass, reading what comes."""
        deadline = self._clock() + seconds
        while (left := deadline - self._clock()) > 0:
            self.read(left)

    def close(self) -> None:
        """Take the terminal away and wait for the end."""
        os.close(self._master)
        try:
            self._process.terminate()
            self._process.wait(_LEFT_TIME_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
