"""One file of an odd name through every command: a name is a name, never a pattern, an option or markup.

Beside it lies a file that a pattern, or a path that was put together by hand, would take for it.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.cli import main
from app.editing.document import open_document
from app.editing.proposals import ProposalStore
from app.editing.result import make_result
from app.paths import proposals_dir
from tests.support.scripted_client import ScriptedClient, fenced

SOURCE, CHANGED = "a = 1\nb = 2\n", "a = 1\nb = 3\n"
NAMES = {
    "[id]/page.py": "i/page.py",
    "(group)/[...slug]/a.py": "(group)/l/a.py",
    "*.py": "a.py",
    "a b.py": "a",
    "-dash.py": "dash.py",
    "--apply": "apply",
    "new\nline.py": "line.py",
    "ta\tb.py": "ta",
    "trail ": "trail",
    "back\\_file.py": "_file.py",
    "'single' \"double\".py": "single",
    "~x.py": "x.py",
    "$HOME": "HOME",
    "[red]x[/].py": "x.py",
    os.fsdecode(b"st\xff.py"): "st.py",
}
"""Name to that of its neighbour."""


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    monkeypatch.setattr("app.clients.in_process.own_client", lambda options: ScriptedClient(fenced(CHANGED)))
    folder = tmp_path / "work"
    file, neighbour = folder / name, folder / NAMES[name]
    for path in (file, neighbour):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE)
    monkeypatch.chdir(folder)

    def run(*arguments: str, text: str) -> bytes:
        """A command ends well, and the file has this text afterwards."""
        assert main(arguments) == 0, capfdbinary.readouterr()
        assert file.read_text() == text and neighbour.read_text() == SOURCE
        return capfdbinary.readouterr().out

    patch = tmp_path / "patch"
    patch.write_bytes(run("edit", "-i", "x", "--context", str(neighbour), "--", name, text=SOURCE))
    if shutil.which("git"):
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
        subprocess.run(["git", "apply", str(patch)], cwd=folder, env=environment, check=True)
        assert file.read_text() == CHANGED and neighbour.read_text() == SOURCE
        file.write_text(SOURCE)
    run("review", "--apply", "--json", str(patch), text=CHANGED)
    run("undo", "--", name, text=SOURCE)
    run("edit", "-i", "x", "--apply", "--", name, text=CHANGED)
    assert len(run("history", "--json", "--", name, text=CHANGED).splitlines()) == 2
    run("undo", "--", name, text=SOURCE)
    run("redo", "--", name, text=CHANGED)
    run("undo", text=SOURCE)

    result = make_result(open_document(name), CHANGED)
    ProposalStore(proposals_dir()).put(result, "x", "scripted", hunks=1)
    run("review", "--apply", "--json", "--", name, text=CHANGED)
    run("edit", "-i", "x", "--patch", name + ".diff", "--", str(neighbour), text=CHANGED)
    assert (folder / (name + ".diff")).is_file()
