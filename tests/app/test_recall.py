"""Instructions and files of earlier runs: newest first, bounded, and never an error."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import recall
from app.paths import state_dir
from app.private_files import write_private
from app.recall import Recall, load_recall, recall_file, remember_file, remember_instruction


def test_nothing_before_the_first_time() -> None:
    assert load_recall() == Recall()


def test_newest_first_without_repetitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("Add types.", "Rename it.", "  Add types.\n"):
        remember_instruction(text)
    for name in ("a.py", "b.py", str(tmp_path / "a.py")):
        remember_file(name)
    assert load_recall() == Recall(("Add types.", "Rename it."), (str(tmp_path / "a.py"), str(tmp_path / "b.py")))
    assert stat.S_IMODE(recall_file().stat().st_mode) == 0o600


def test_what_says_nothing_or_too_much_is_not_kept() -> None:
    for text in ("", " \n", "x" * (recall.MOST_CHARACTERS + 1)):
        remember_instruction(text)
    assert load_recall() == Recall()


def test_bounded() -> None:
    for number in range(recall.MOST_FILES + 3):
        remember_file(f"/{number}")
    files = load_recall().files
    assert len(files) == recall.MOST_FILES and files[0] == f"/{recall.MOST_FILES + 2}"


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=20), max_size=12))
def test_every_text_comes_back(texts: list[str]) -> None:
    write_private(recall_file(), b"")
    for text in texts:
        remember_instruction(text)
    kept = [text.strip() for text in reversed(texts) if text.strip()]
    assert list(load_recall().instructions) == list(dict.fromkeys(kept))


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b"\xff", b"[" * 200_000),
        b'{"instructions": 3, "files": [1, null, ""]}',
        b'{"instructions": [["x"]]}',
    ],
)
def test_a_damaged_file_means_nothing_and_heals(data: bytes) -> None:
    write_private(recall_file(), data)
    assert load_recall() == Recall()
    remember_instruction("Do.")
    assert load_recall().instructions == ("Do.",)
    assert json.loads(recall_file().read_bytes())["instructions"] == ["Do."]


def test_what_cannot_be_kept_is_no_error() -> None:
    state_dir().parent.mkdir(parents=True)
    state_dir().write_text("a file where the folder should be")
    remember_instruction("Do.")
    assert load_recall() == Recall()
