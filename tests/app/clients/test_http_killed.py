"""Server or client killed in the middle of an edit: the file is what it was, and the next edit starts clean."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import ExitCode
from app.paths import journal_dir
from tests.support.command_line import run_command
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.raw_server import PATIENCE_S, raw_server


def untouched(file: Path) -> bool:
    """The bytes are the old ones, no temporary lies beside the file, and nothing is in the journal but its lock."""
    return (
        file.read_text() == SOURCE and os.listdir(file.parent) == [file.name] and os.listdir(journal_dir()) == ["lock"]
    )


def applied(file: Path) -> None:
    """The next edit goes through."""
    with raw_server("whole") as server:
        ran = run_command(file.parent, "edit", file.name, "-i", "Do.", "--apply", "--engine", server.address)
        assert ran.code == ExitCode.OK, ran.err
    assert file.read_text() == CHANGED


@pytest.mark.parametrize("ends", ["reset", "half"])
def test_a_server_that_dies_leaves_the_file_as_it_was(file: Path, ends: str) -> None:
    with raw_server(ends) as server:
        ran = run_command(file.parent, "edit", file.name, "-i", "Do.", "--apply", "--engine", server.address)
    assert ran.code == ExitCode.ENGINE, ran.err
    assert ("broke the connection off" if ends == "reset" else "without saying that it is whole") in ran.err
    assert untouched(file)
    applied(file)


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (lambda process: process.send_signal(signal.SIGKILL), -signal.SIGKILL),
        (lambda process: process.send_signal(signal.SIGINT), ExitCode.INTERRUPTED),
    ],
)
def test_a_client_that_is_stopped_leaves_the_file_as_it_was_and_the_server_idle(
    file: Path, stop: Callable[["subprocess.Popen[bytes]"], None], code: int
) -> None:
    with raw_server("waits") as server:
        command = [sys.executable, "-P", "-m", "app.cli", "edit", file.name, "-i", "Do.", "--apply"]
        with subprocess.Popen(
            [*command, "--engine", server.address], cwd=file.parent, stderr=subprocess.PIPE
        ) as process:
            assert server.streaming.wait(PATIENCE_S)
            stop(process)
            _, err = process.communicate(timeout=PATIENCE_S)
        assert server.gone.wait(PATIENCE_S)
    assert process.returncode == code and b"Traceback" not in err
    assert untouched(file)
    applied(file)


def test_the_key_reaches_the_server_and_no_file(file: Path) -> None:
    with raw_server("reset") as server:
        arguments = ("edit", file.name, "-i", "Do.", "--verbose", "--engine", server.address)
        ran = run_command(file.parent, *arguments, REDRAFT_ENGINE_KEY="sk-secret-1")
    assert "sk-secret-1" not in ran.err and b"sk-secret-1" not in ran.out
    homes = {Path(os.environ[f"XDG_{kind}_HOME"]) for kind in ("CONFIG", "STATE", "DATA", "CACHE")}
    written = [path for home in homes if home.exists() for path in home.rglob("*") if path.is_file()]
    assert not any(b"sk-secret-1" in path.read_bytes() for path in written)
