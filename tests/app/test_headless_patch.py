"""What an edit prints is what the usual programs apply: the diff on stdout makes the very bytes that --apply writes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.headless_edit import CHANGED, SOURCE, run_edit
from tests.support.scripted_client import ScriptedClient, fenced

FORMS = {
    "lf": SOURCE.encode(),
    "crlf": SOURCE.replace("\n", "\r\n").encode(),
    "mixed": SOURCE.replace("\n", "\r\n", 7).encode(),
    "no final newline": SOURCE.removesuffix("\n").encode(),
    "bom": SOURCE.encode("utf-8-sig"),
    "form feed and line separator": SOURCE.replace("result = 0", "result = 0\f # \u2028 \x85").encode(),
}
NAMES = ["sums.py", "a b.py", "[id].py", "dir/sums.py", "ünï.py", "--- a.py"]
PROGRAMS = {"git": ["git", "apply"], "patch": ["patch", "-p1", "-i"]}


def check(program: str, folder: Path, name: str, data: bytes) -> None:
    if shutil.which(program) is None:
        sentence = f"{program} is needed to check that it takes our diffs"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    reply = fenced(CHANGED.replace("high - low", "(high - low)").replace("result = 0", "result = 0.0"))
    diff = run_edit(ScriptedClient(reply), name).out
    (folder / "out.diff").write_bytes(diff)
    subprocess.run(
        [*PROGRAMS[program], "out.diff"],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
    )
    by_program = path.read_bytes()
    path.write_bytes(data)
    assert run_edit(ScriptedClient(reply), name, apply=True).code == 0
    assert by_program == path.read_bytes() != data


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    check(program, tmp_path, "sums.py", FORMS[form])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    check(program, tmp_path, name, SOURCE.encode())


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_absolute_path_inside_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check(program, tmp_path, str(tmp_path / "sums.py"), SOURCE.encode())
