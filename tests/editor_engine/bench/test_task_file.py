"""Task files by anybody: objects with their line numbers, or a sentence that says which line it is."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from editor_engine.bench import task_file
from editor_engine.bench.task_file import numbered_tasks
from editor_engine.errors import RequestError


def test_lines_end_at_line_feeds_only_and_blank_ones_count(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes('\ufeff{"a": "x\u2028y"}\r\n\n  \n{"b": 1}'.encode())
    assert numbered_tasks(path) == [(1, {"a": "x\u2028y"}), (4, {"b": 1})]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello", "Line 2 of .* is damaged: Expecting value"),
        (b"[]", "Line 2 of .* holds no JSON object"),
        (b'{"a": ' + b"[" * 200_000, "Line 2 of .* nested too deeply"),
        (b'{"n": ' + b"9" * 5000 + b"}", "Line 2 of .* is damaged: .*digits"),
        (b"\xff\xfe\x81", "Line 2 of .* is damaged"),
        (b"\x1b[31m", "Line 2 of .* is damaged"),
    ],
)
def test_the_line_that_is_no_task_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(RequestError, match=words):
        numbered_tasks(path)


def test_a_missing_file_a_folder_and_one_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_file, "LIMIT", 1000)
    for path, words in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory"), ("/dev/zero", "more than")):
        with pytest.raises(RequestError, match=f"Cannot read the tasks in .*: .*{words}"):
            numbered_tasks(Path(path))


@pytest.mark.timeout(20)
def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b'{"a": 1}\n',))
    writer.start()
    assert numbered_tasks(path) == [(1, {"a": 1})]
    writer.join()


@hypothesis_settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.binary(max_size=80) | st.text('{}[]":,019eE.-tfn aru\\\n', max_size=80).map(str.encode))
def test_any_bytes_give_objects_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    try:
        assert all(isinstance(task, dict) and number >= 1 for number, task in numbered_tasks(path))
    except RequestError as error:
        assert str(error).startswith("Line ")
