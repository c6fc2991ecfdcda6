"""Printed patches: git and GNU patch make the same bytes of them as we do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.editing import patch as patch_module
from app.editing.diff import join, make_hunks
from app.editing.document import Document, open_bytes, open_document
from app.editing.patch import is_exact, patch_bytes, patch_name
from app.editing.result import make_result
from app.errors import PatchCheckError
from tests.support.byte_forms import documents, rewrites

TOOLS = {
    "git": ["git", "apply", "-p1", "--whitespace=nowarn", "p.diff"],
    "patch": ["patch", "-p1", "--binary", "--quiet", "--no-backup-if-mismatch", "-i", "p.diff"],
}
NAMES = ["f.py", "[id].py", "a b.py", 'quote".py', "back\\slash", "ta\tb", "dir é/日本.py"]


def tool(name: str) -> list[str]:
    if shutil.which(TOOLS[name][0]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is needed")
        pytest.skip(f"{name} is not installed")
    return TOOLS[name]


def applied_by(command: list[str], folder: Path, name: str, source: bytes, patch: bytes) -> bytes:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(source)
    (folder / "p.diff").write_bytes(patch)
    ran = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, "GIT_DIR": "/dev/null"})
    assert ran.returncode == 0, ran.stdout + ran.stderr + patch
    return path.read_bytes()


@pytest.mark.parametrize("name", TOOLS)
@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), document=documents())
def test_tools_make_the_same_bytes(tmp_path: Path, name: str, data: st.DataObject, document: Document) -> None:
    command = tool(name)
    hunks = make_hunks(make_result(document, data.draw(rewrites(document))))
    accepted = [hunk for hunk in hunks if data.draw(st.booleans())]
    expected = join(document, accepted)
    patch = patch_bytes(document, accepted, "f.py")
    if accepted and is_exact(document) and expected:
        assert applied_by(command, tmp_path, "f.py", document.data, patch) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", TOOLS)
def test_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    document = open_bytes(b"a\nb\n", name)
    patch = patch_bytes(document, make_hunks(make_result(document, "a\nB\n")))
    assert applied_by(tool(program), tmp_path, name, b"a\nb\n", patch) == b"a\nB\n"


def test_shape_of_a_patch() -> None:
    document = open_bytes(b"a\r\nb", "./f.py")
    assert patch_bytes(document, make_hunks(make_result(document, "a\nc"))) == (
        b"--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n a\r\n-b\n\\ No newline at end of file\n"
        b"+c\n\\ No newline at end of file\n"
    )
    assert patch_bytes(document, ()) == b""


def test_start_lines_follow_from_the_accepted_hunks() -> None:
    source = "".join(f"{n}\n" for n in range(40))
    document = open_bytes(source.encode(), "f")
    text = source.replace("0\n", "new\nnew\n0\n", 1).replace("\n30\n", "\nx\n")
    first, second = make_hunks(make_result(document, text))
    assert b"@@ -28,7 +30,7 @@" in patch_bytes(document, [second, first])
    assert b"@@ -28,7 +28,7 @@" in patch_bytes(document, [second])


def test_utf16_is_shown_as_text_and_says_so() -> None:
    document = open_bytes("\ufeffa\nb\n".encode("utf-16-le"), "f")
    patch = patch_bytes(document, make_hunks(make_result(document, "a\né\n")))
    assert not is_exact(document)
    assert "+é\n" in patch.decode("utf-8")


def test_name_is_relative_inside_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f.py").write_bytes(b"a\n")
    assert patch_name(open_document(tmp_path / "d" / "f.py")) == "d/f.py"
    assert patch_name(open_document("d/../d/f.py")) == "d/f.py"
    assert patch_name(open_bytes(b"a\n", "/elsewhere/f.py")) == "elsewhere/f.py"


def test_a_patch_that_would_not_give_the_bytes_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    document = open_bytes(b"a\nb\n", "f")
    hunks = make_hunks(make_result(document, "a\nB\n"))
    whole = patch_module._body

    def cut(*args: object) -> bytes:
        return whole(*args).replace(b"+B", b"+C")  # type: ignore[arg-type]

    monkeypatch.setattr(patch_module, "_body", cut)
    with pytest.raises(PatchCheckError):
        patch_bytes(document, hunks)
