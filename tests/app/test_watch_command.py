"""`redraft watch` as a process: what it writes where, how it ends, and what it leaves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.errors import ExitCode
from app.paths import proposals_dir
from app.watch.presence import running_watches, stop_watch, watches_dir
from tests.support.watch_program import PROGRAM

TRIGGERED = "x = 1\n# redraft: say hello\n"


class Watch:
    """A watch in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    def until(self, kind: str, **fields: object) -> dict[str, Any]:
        """The next JSON line of this type with these values."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            self.lines.append(json.loads(text))
            line = self.lines[-1]
            if line["type"] == kind and all(line[name] == value for name, value in fields.items()):
                return line
        raise AssertionError(f"no {kind} {fields} in {self.lines}; {self.process.communicate()[1]}")

    def end(self, number: int) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        self.lines += [json.loads(line) for line in out.splitlines()]
        assert "Traceback" not in err, err
        return self.process.returncode


@contextmanager
def watch(folder: Path, *arguments: str) -> Iterator[Watch]:
    command = [sys.executable, "-c", PROGRAM, "watch", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, stdout=pipe, stderr=pipe, text=True, stdin=subprocess.DEVNULL
    ) as process:
        try:
            yield Watch(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_watch_proposes_and_ends_by_a_signal(tmp_path: Path, number: int) -> None:
    with watch(tmp_path, ".", "--json") as running:
        ready = running.until("ready")
        assert ready["roots"] == [str(tmp_path)] and ready["events"] is True
        (tmp_path / "a.py").write_text(TRIGGERED)
        proposal = running.until("proposal")
        assert proposal["path"] == str(tmp_path / "a.py") and proposal["hunks"] == 1
        assert proposal["timing"]["settle_s"] >= 0.25
        running.until("status", state="idle")
        assert running.end(number) == ExitCode.INTERRUPTED
        result = running.lines[-1]
        assert (result["type"], result["outcome"], result["exit_code"]) == ("result", "cancelled", 130)
        assert (result["proposals"], result["applied"], result["failed"]) == (1, 0, 0)
        assert all(line["schema_version"] == 1 and "t_ms" in line for line in running.lines)
    assert [path.suffix for path in proposals_dir().iterdir()] == [".proposal"]


def test_a_running_edit_is_left_and_nothing_of_it_kept(tmp_path: Path) -> None:
    with watch(tmp_path, ".", "--json", "--held") as running:
        running.until("ready")
        (tmp_path / "a.py").write_text(TRIGGERED)
        running.until("status", state="running")
        assert running.end(signal.SIGTERM) == ExitCode.INTERRUPTED
    assert not proposals_dir().exists() or list(proposals_dir().iterdir()) == []


def test_other_processes_see_a_watch_and_can_stop_it(tmp_path: Path) -> None:
    assert running_watches() == []
    with watch(tmp_path, ".", "--json", "--held") as running:
        running.until("ready")
        (tmp_path / "a.py").write_text(TRIGGERED)
        running.until("status", state="running")
        [seen] = running_watches()
        assert seen.pid == running.process.pid and seen.roots == (str(tmp_path),)
        assert seen.status.state == "running" and seen.status.running == str(tmp_path / "a.py")
        assert stop_watch(seen.pid)
        assert running.process.wait(timeout=30) == ExitCode.INTERRUPTED
    assert running_watches() == [] and list(watches_dir().iterdir()) == []
    assert not stop_watch(seen.pid)


def test_what_a_killed_watch_left_is_no_watch(tmp_path: Path) -> None:
    with watch(tmp_path, ".", "--json") as running:
        running.until("ready")
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(timeout=30)
    assert not stop_watch(running.process.pid)
    assert running_watches() == [] and list(watches_dir().iterdir()) == []


def test_a_watch_ends_with_its_stdin_when_asked_to(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "watch", ".", "--json", "--until-eof"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        running = Watch(process)
        running.until("ready")
        assert process.stdin is not None
        process.stdin.write("words mean nothing\n")
        process.stdin.flush()
        (tmp_path / "a.py").write_text(TRIGGERED)
        running.until("proposal")
        out, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED and err == ""
    assert json.loads(out.splitlines()[-1])["outcome"] == "cancelled"


def test_a_stdin_that_never_ends_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, ".", "--until-eof")
    assert done.returncode == ExitCode.USAGE and "--until-eof needs a pipe" in done.stderr


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", PROGRAM, "watch", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_once_talks_on_stderr_only(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TRIGGERED)
    done = run(tmp_path, ".", "--once")
    assert (done.returncode, done.stdout) == (0, "")
    assert "a.py: 1 hunk" in done.stderr and "redraft review" in done.stderr
    again = run(tmp_path, ".", "--once", "--quiet")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert len(list(proposals_dir().iterdir())) == 1  # the same work is stored once


def test_once_with_apply_takes_the_trigger_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n# redraft: say hello\r\n")
    done = run(tmp_path, "a.py", "--once", "--apply", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[-1]["outcome"] == "applied" and lines[-1]["applied"] == 1
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\r\nprint('hello')\r\n"
    again = run(tmp_path, "a.py", "--once", "--apply", "--json")
    assert again.returncode == ExitCode.UNCHANGED
    assert json.loads(again.stdout.splitlines()[-1])["outcome"] == "unchanged"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], ExitCode.FILE, "nowhere does not exist"),
        ([".", "-i", " "], ExitCode.USAGE, "instruction is empty"),
        ([".", "--rules", "none.toml"], ExitCode.USAGE, "none.toml cannot be read"),
        ([".", "--notify", "'"], ExitCode.USAGE, "is not a command"),
        ([], ExitCode.USAGE, "PATH"),
    ],
)
def test_refusals(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == code and said in done.stderr and done.stdout == ""
    if arguments:
        done = run(tmp_path, *arguments, "--json")
        [line] = [json.loads(line) for line in done.stdout.splitlines()]
        assert line["type"] == "result" and line["exit_code"] == code and said in line["error"]["message"]


def test_notify_gets_a_sentence_and_the_event(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.py").write_text(TRIGGERED)
    script = tmp_path / "tell"
    told = tmp_path / "told"
    told.mkdir()
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" > {told}/sentence\ncat > {told}/event\n')
    script.chmod(0o755)
    done = run(tmp_path, "root", "--once", "--notify", f"'{script}'")
    assert done.returncode == 0, done.stderr
    assert "a.py: 1 hunk" in (told / "sentence").read_text()
    event = json.loads((told / "event").read_text())
    assert event["type"] == "proposal" and event["path"] == os.fspath(tmp_path / "root" / "a.py")


def test_a_notify_command_that_is_not_there_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TRIGGERED)
    done = run(tmp_path, ".", "--once", "--notify", "/no/such/program")
    assert done.returncode == 0 and done.stderr.count("--notify command cannot be run") == 1
