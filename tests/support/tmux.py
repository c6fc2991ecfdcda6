"""The real program in a real terminal: types keys and reads the screen through tmux.

Knows nothing of what is tested. Invariant: a wait ends when the screen shows the text, never after a time of its own;
the server of a session is its own and ends with it.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


class Terminal:
    """One program in one window."""

    def __init__(self, socket: Path, output: int) -> None:
        self._socket = socket
        self._output = output

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command on the session's server."""
        done = subprocess.run(["tmux", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def press(self, *keys: str) -> None:
        """Press keys, in tmux's names."""
        self.tmux("send-keys", "-t", "ui", *keys)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self.tmux("send-keys", "-t", "ui", "-l", text)

    def screen(self) -> str:
        """What the terminal shows."""
        return self.tmux("capture-pane", "-p", "-t", "ui")

    def wait_for(self, text: str, seconds: float = 240.0) -> str:
        """The screen once it shows `text`; looks again whenever the program has written something."""
        deadline = time.monotonic() + seconds
        while text not in (screen := self.screen()):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._output], [], [], left)[0] or not os.read(self._output, 1 << 16):
                pytest.fail(f"the screen never showed {text!r}; it shows:\n{self.screen()}")
        return screen

    @property
    def pid(self) -> int:
        """The program's process."""
        return int(self.tmux("display-message", "-p", "-t", "ui", "#{pane_pid}"))

    def kill(self) -> None:
        """What kill -9 does to the program; returns when it is gone."""
        with ended(self.pid) as gone:
            os.kill(self.pid, signal.SIGKILL)
            gone()


@contextmanager
def ended(pid: int, seconds: float = 60.0) -> Iterator[Callable[[], None]]:
    """Gives a call that waits for the end of a process."""
    handle = os.pidfd_open(pid)

    def wait() -> None:
        if not select.select([handle], [], [], seconds)[0]:
            pytest.fail("the program did not end")

    try:
        yield wait
    finally:
        os.close(handle)


@contextmanager
def terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], size: tuple[int, int] = (120, 40)
) -> Iterator[Terminal]:
    """Run a command in a terminal of its own. Without tmux the test is skipped, and fails where CI is true."""
    if shutil.which("tmux") is None:
        sentence = "tmux is missing; `make ci-deps` installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    socket, pipe = folder / "tmux", folder / "output"
    os.mkfifo(pipe)
    output = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    session = Terminal(socket, output)
    given = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
    start = ["tmux", "-S", str(socket), "-f", "/dev/null", "new-session", "-d", "-s", "ui"]
    # The shell waits until the pipe has a writer, so that nothing the program writes is missed.
    waiting = ["sh", "-c", 'read go && exec "$@"', "sh", *command]
    try:
        subprocess.run([*start, "-x", str(size[0]), "-y", str(size[1]), *waiting], cwd=folder, env=given, check=True)
        session.tmux("pipe-pane", "-t", "ui", f"exec cat > '{pipe}'")
        session.press("Enter")
        yield session
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True)
        os.close(output)
