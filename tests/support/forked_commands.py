"""The real command line, many times over: one process imports it and forks for every run, so that a run takes little.

Knows nothing of what is tested. Invariant: every run is a process of its own that may be killed at any moment, and none
outlives the block.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_ROOT = Path(__file__).resolve().parents[2]

_FORKER = """
import json, os, sys
sys.path.insert(0, {root!r})
{prepare}
from app.cli import main
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
        continue
    streams = [os.open(place, os.O_WRONLY) for place in (order["out"], order["err"])]
    child = os.fork()
    if child == 0:
        for fd, opened in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(opened, fd)
        os.closerange(3, 64)  # ours, which would keep what is piped to it open
        os._exit(main(order["arguments"]))
    for opened in streams:
        os.close(opened)
    print(child, flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """A run that is over."""

    code: int
    """Exit code, or minus the signal that ended it."""
    seconds: float
    """From the fork to the end."""
    out: str
    err: str


class Run:
    """A command that runs. What it prints has to fit into a pipe."""

    def __init__(self, forks: "Forks", pid: int, out: IO[str], err: Path) -> None:
        self.pid = pid
        self.out = out
        self._forks = forks
        self._err = err
        self._started = time.perf_counter()

    def kill(self, after_s: float, number: signal.Signals = signal.SIGKILL) -> None:
        """Send this signal so many seconds after the fork; to one that has ended, nothing."""
        while time.perf_counter() - self._started < after_s:
            time.sleep(0)  # an exact moment, and the processor for the one that runs
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self) -> Ended:
        """Wait for it."""
        code = self._forks.ask({"wait": self.pid})
        seconds = time.perf_counter() - self._started
        with self.out:
            ended = Ended(code, seconds, self.out.read(), self._err.read_text())
        assert "Traceback" not in ended.err, ended.err
        return ended


class Forks:
    """The process that forks."""

    def __init__(self, process: "subprocess.Popen[str]", place: Path) -> None:
        self._process = process
        self._place = place

    def ask(self, order: dict[str, Any]) -> int:
        """One order, one number."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, *arguments: str) -> Run:
        """Run `redraft` with these arguments."""
        out, err = self._place.with_suffix(".out"), self._place.with_suffix(".err")
        err.write_bytes(b"")  # what the last one said is not this one's
        out.unlink(missing_ok=True)
        os.mkfifo(out)
        pipe = os.open(out, os.O_RDONLY | os.O_NONBLOCK)  # before there is a writer
        pid = self.ask({"arguments": arguments, "out": str(out), "err": str(err)})
        os.set_blocking(pipe, True)
        return Run(self, pid, os.fdopen(pipe), err)


@contextmanager
def forks(folder: Path, place: Path, prepare: str) -> Iterator[Forks]:
    """Runs have `folder` as current folder and print to files named after `place`, one at a time.

    `prepare`: Python that the process runs once, so that no run has to: imports.
    """
    program = _FORKER.format(root=str(_ROOT), prepare=prepare)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield Forks(process, place)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
