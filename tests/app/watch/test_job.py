"""One saved file: what the model sees, and that taking triggers out touches no other byte."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.editing.diff import join
from app.errors import AppError, NotAFileError, UnchangedError
from app.watch.job import Edited, EditLimits, asked_of, edit_saved, open_saved
from editor_engine.requests import CancelFlag
from tests.support.watch_rig import WatchClient, edit_with

CODECS = ["utf-8", "utf-8-sig", "utf-16"]


def edited(path: Path, client: WatchClient, standing: str | None = None) -> Edited:
    asked = asked_of(open_saved(str(path)), standing)
    assert asked is not None
    return asyncio.run(edit_saved(asked, client, EditLimits(), CancelFlag()))


def hello() -> WatchClient:
    return WatchClient(edit_with(lambda source: f"{source}hello()\n"))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "seen", "result"),
    [
        ("#!/bin/python\n# redraft: a\nx = 1\n", "#!/bin/python\nx = 1\n", "#!/bin/python\nx = 1\nhello()\n"),
        ("# redraft: a\nx = 1\n", "x = 1\n", "x = 1\nhello()\n"),
        ("x = 'é'  # redraft: ü\n", "x = 'é'\n", "x = 'é'\nhello()\n"),
        ("x = 1\n# redraft: a", "x = 1\n", "x = 1\nhello()"),
        ("# redraft: write it", "\n", "hello()"),
        ("# redraft: write it\n", "\n", "hello()\n"),
    ],
)
def test_files_of_every_kind(tmp_path: Path, codec: str, end: str, text: str, seen: str, result: str) -> None:
    path, client = tmp_path / "a.py", hello()
    path.write_bytes(text.replace("\n", end).encode(codec))
    made = edited(path, client)
    assert client.edited() == [seen]
    new = made.result.data.decode(codec)
    # A file without any line end has none to take over; an empty line stands for a file of nothing but triggers.
    assert new.replace("\r\n", "\n").lstrip("\n") == result
    if end in text.replace("\n", end):
        assert new == result.replace("\n", end) or new.lstrip("\r\n") == result.replace("\n", end)
    assert join(made.asked.document, made.hunks) == made.result.data


def test_an_edit_that_only_takes_triggers_out_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("# redraft: a\nx = 1\n")
    with pytest.raises(UnchangedError):
        edited(path, WatchClient(edit_with(lambda source: source)))


def test_warnings_have_the_numbers_of_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    lines = [f"value_{number} = {number}" for number in range(40)]
    path.write_text("\n".join(["# redraft: one", *lines[:10], "# redraft: two", *lines[10:], ""]))
    gone = "\n".join(lines[20:26]) + "\n"
    made = edited(path, WatchClient(edit_with(lambda source: source.replace(gone, ""))))
    [lost] = [warning for warning in made.warnings if warning.code == "lost_lines"]
    assert [made.asked.document.lines[line - 1] for line in lost.lines] == lines[20:26]


def test_a_standing_instruction_needs_no_trigger(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    assert asked_of(open_saved(str(path)), None) is None
    made = edited(path, hello(), "Say hello.")
    assert made.asked.bare is made.asked.document and made.asked.instruction == "Say hello."


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "folder").symlink_to(".")
    for name in ("link.py", "folder/a.py"):
        with pytest.raises(NotAFileError):
            open_saved(str(tmp_path / name))


_LINES = st.lists(
    st.sampled_from(["x = 1", "# redraft: a", "y = 2  # redraft: b", "", "#   more", "z = 'é'", "\tw = 3  "]),
    min_size=1,
    max_size=10,
)


@settings(
    derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lines=_LINES,
    ends=st.lists(st.sampled_from(["\n", "\r\n"]), min_size=10, max_size=10),
    final=st.booleans(),
    codec=st.sampled_from(CODECS),
)
def test_lines_without_triggers_keep_their_bytes(
    tmp_path: Path, lines: list[str], ends: list[str], final: bool, codec: str
) -> None:
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    text = text if final else text.rstrip("\r\n")
    path = tmp_path / "a.py"
    path.write_bytes(text.encode(codec))
    try:
        document = open_saved(str(path))
    except AppError:  # empty
        return
    asked = asked_of(document, None)
    if asked is None:
        assert "redraft: " not in text
        return
    made = asyncio.run(edit_saved(asked, hello(), EditLimits(), CancelFlag()))
    assert "redraft:" not in made.result.data.decode(codec)
    kept = [document.source_lines[line].raw for line in asked.lines]
    mark = document.codec.bom
    for index, raw in enumerate(kept[:-1]):
        if "redraft:" not in document.source_lines[asked.lines[index]].text:
            assert made.result.lines[index].raw.removeprefix(mark) == raw.removeprefix(mark)
    assert join(document, made.hunks) == made.result.data
