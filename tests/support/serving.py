"""`redraft serve --json` as a process of its own, and what the system says of it.

Knows the start line and the signals. Invariant: a server that was left is gone, and one that printed a traceback fails
the test.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

PATIENCE_S = 60
"""A hung test fails; none waits this long."""
ROOT = Path(__file__).resolve().parents[2]


class Serving:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate(timeout=PATIENCE_S)[1]
        self.start: dict[str, Any] = json.loads(line)

    @property
    def place(self) -> str:
        """Its first address, as `--engine` takes it."""
        return str(self.start["listening"][0])

    @property
    def socket(self) -> str:
        """Path of the unix socket it listens on."""
        return self.place.removeprefix("unix:")

    def client(self) -> httpx2.Client:
        """A client of that address."""
        tcp = self.place.startswith("http")
        transport = None if tcp else httpx2.HTTPTransport(uds=self.socket)
        base = self.place if tcp else "http://localhost"
        return httpx2.Client(base_url=base, transport=transport, timeout=PATIENCE_S, trust_env=False)

    def held(self) -> tuple[int, int]:
        """(open file descriptors, threads) of the process."""
        proc = Path(f"/proc/{self.process.pid}")
        return len(list((proc / "fd").iterdir())), len(list((proc / "task").iterdir()))

    def resident_bytes(self) -> int:
        """Memory the process takes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def end(self, number: signal.Signals | None = signal.SIGTERM) -> tuple[int, list[dict[str, Any]], str]:
        """(exit code, the other lines, stderr) after this signal; None: it ends by itself."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in err
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


@contextmanager
def serving(*arguments: str | Path) -> Iterator[Serving]:
    """Start it and wait until it listens."""
    command = [sys.executable, "-m", "app.cli", "serve", "--json", *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Serving(process)
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE_S)
