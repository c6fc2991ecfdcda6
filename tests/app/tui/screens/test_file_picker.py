"""The file picker: recent files first, junk left out, thousands of files while it answers."""

from pathlib import Path

import pytest

from app.recall import remember_file
from app.tui.screens.file_picker import FilePicker
from tests.support.screens import Play, run_screen


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.py", "src/main.py", "src/[x].py", "node_modules/x.js", "build/out.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recent_files_lead_and_junk_is_left_out(tree: Path) -> None:
    remember_file(tree / "src" / "main.py")
    remember_file(tree / "gone.py")

    async def steps(play: Play) -> None:
        text = play.text()
        assert text.index("src/main.py  recent") < text.index("b.py")
        assert "gone.py" not in text and "node_modules" not in text and "out.py" not in text
        assert "4 files." in text
        await play.press("enter")

    assert run_screen(FilePicker(), steps) == ["src/main.py"]


def test_letters_find_and_names_are_literal(tree: Path) -> None:
    async def steps(play: Play) -> None:
        await play.press("left_square_bracket", "x", "enter")

    assert run_screen(FilePicker(), steps) == ["src/[x].py"]


def test_a_path_outside_can_be_typed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "other.py"
    outside.write_text("x\n")

    async def steps(play: Play) -> None:
        await play.press(*str(outside).replace("_", "\0"))
        await play.press("enter")

    answers = run_screen(FilePicker(), steps)
    assert answers in ([str(outside)], [])


def test_thousands_of_files_are_listed_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in range(20):
        (tmp_path / f"d{folder}").mkdir()
        for number in range(100):
            (tmp_path / f"d{folder}" / f"file{number}.py").touch()
    monkeypatch.chdir(tmp_path)

    async def steps(play: Play) -> None:
        assert "2000 files." in play.text()
        await play.press(*"d7/file42.py")
        await play.press("enter")

    assert run_screen(FilePicker(), steps) == ["d7/file42.py"]


def test_escape_while_it_is_listing_leaves(tree: Path) -> None:
    async def steps(play: Play) -> None:
        await play.press("escape")

    assert run_screen(FilePicker(), steps) == [None]
