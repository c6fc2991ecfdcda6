"""Runs the real command line in a process of its own, with or without a scripted engine in the place of a model.

Knows nothing of what is tested. Invariant: the child sees the test's environment and current folder, and a run that
prints a traceback fails the test.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

_CHILD = """
import json, sys
sys.path.insert(0, {root!r})
{before}
from app.cli import main
code = main()
{after}
sys.exit(code)
"""

_SCRIPTED = """
import app.clients.in_process
from tests.support.scripted_client import ScriptedClient, fenced
app.clients.in_process.own_client = lambda options: ScriptedClient(fenced({reply!r}))
"""

_NO_NETWORK = """
import socket
tried = []
def audit(event, given):
    inet = event == "socket.__new__" and given[1] in (socket.AF_INET, socket.AF_INET6)
    if inet or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect"):
        tried.append(event)
        raise OSError("there is no network")
sys.addaudithook(audit)
"""


@dataclass(frozen=True)
class Ran:
    """A finished run."""

    code: int
    out: bytes
    err: str
    modules: frozenset[str]
    """Names of all modules loaded at the end."""
    reached_out: bool
    """The network was tried (and refused); False where it was not watched."""


def run_command(
    folder: Path,
    *arguments: str,
    reply: str | None = None,
    stdin: bytes = b"",
    no_network: bool = False,
    joined: bool = False,
    stdout: int = subprocess.PIPE,
    **environment: str,
) -> Ran:
    """`redraft` with these arguments, current folder `folder`.

    `reply`: the new file a scripted model answers with; None leaves the real engine in place. `joined`: stderr goes to
    the same pipe as stdout. `stdout`: a descriptor that takes it instead. `environment` adds variables.
    """
    facts = folder.parent / "facts.json"
    tried = "bool(tried)" if no_network else "False"
    before = (_NO_NETWORK if no_network else "") + ("" if reply is None else _SCRIPTED.format(reply=reply))
    after = f"json.dump([sorted(sys.modules), {tried}], open({str(facts)!r}, 'w'))"
    done = subprocess.run(
        [sys.executable, "-c", _CHILD.format(root=str(_ROOT), before=before, after=after), *arguments],
        cwd=folder,
        input=stdin,
        stdout=stdout,
        stderr=subprocess.STDOUT if joined else subprocess.PIPE,
        env={**os.environ, **environment},
        timeout=120,
    )
    modules, reached_out = json.loads(facts.read_text())
    err = "" if joined else done.stderr.decode()
    out = done.stdout or b""
    assert "Traceback" not in err and b"Traceback" not in out, err
    return Ran(done.returncode, out, err, frozenset(modules), reached_out)
