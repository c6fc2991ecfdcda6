"""The session and task files as turns, and as requests any engine can answer."""

import json
from pathlib import Path

import pytest

from app.bench.turns import Turn, own_session, peer_requests, turns_of_file
from app.editing.language import detect_language
from editor_engine.errors import RequestError

KINDS = ["insert", "delete", "rename", "reorder", "add types", "docstrings", "no-op", "small fix", "extract function"]
TASK = {"id": "one", "before": "a = 1\r\nb = 2\r\n", "instruction": "Swap them.", "path": "x.py"}


def test_the_session_is_the_one_of_the_design() -> None:
    turns = own_session()
    assert [turn.kind for turn in turns] == [*KINDS, "rewrite everything"]
    assert turns[0].text is not None and all(turn.text is None for turn in turns[1:])
    assert {turn.language.fence for turn in turns} == {"python"}
    assert all(": " not in turn.instruction[:12] and turn.instruction for turn in turns)


def test_tasks_are_read_with_lf_and_the_language_of_their_path(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    lines = [json.dumps(TASK), "", json.dumps({**TASK, "id": "two", "path": None, "before": "a\u2028b\n"})]
    path.write_text("\n".join(lines), encoding="utf-8")
    one, two = turns_of_file(path)
    assert (one.kind, one.text, one.language.fence) == ("one", "a = 1\nb = 2\n", "python")
    assert (two.text, two.language.fence) == ("a\u2028b\n", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no task"),
        ("{", "Line 1 of .* is damaged"),
        ("{}", "Line 1 of .* needs id, before and instruction"),
        (json.dumps(TASK) + "\n" + json.dumps({**TASK, "before": ""}), "Line 2 of .* needs"),
    ],
)
def test_a_file_that_is_no_task_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "tasks.jsonl").write_text(text)
    with pytest.raises(RequestError, match=words):
        turns_of_file(tmp_path / "tasks.jsonl")


def test_a_missing_or_undecodable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, words in (("missing", "Cannot read the tasks"), ("binary", "Line 1 of .* is damaged")):
        with pytest.raises(RequestError, match=words):
            turns_of_file(tmp_path / name)


def test_engines_are_asked_for_the_whole_file_with_room_to_grow() -> None:
    python = detect_language("x.py")
    turns = [Turn("one", "Do it.", "a = 1\n" * 400, python), Turn("two", "Undo it.", None, python)]
    requests, longest = peer_requests(turns, len)
    assert [request.source for request in requests] == ["a = 1\n" * 400] * 2
    assert [request.max_tokens for request in requests] == [2400 + 1200] * 2
    assert "Do it." in requests[0].messages[-1].content and "Undo it." in requests[1].messages[-1].content
    assert longest >= 2400 + 3600 and peer_requests([], len) == ((), 0)
