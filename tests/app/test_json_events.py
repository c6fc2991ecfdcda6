"""The machine interface: the shape of every line, and the fields of every type of an edit."""

import io
import json
import os
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.json_events import JsonWriter, plain_data
from editor_engine.events import Provenance
from tests.support.headless_edit import CHANGED, LINE_FIELDS, RESULT_FIELDS, SOURCE, run_edit
from tests.support.scripted_client import ScriptedClient, fenced

FIELDS = {
    "start": {
        *("version", "file", "model", "prompt_tokens", "cached_tokens", "expected_tokens", "expected_s"),
        *("estimated", "max_tokens", "context_tokens"),
    },
    "prefill": {"done", "total"},
    "pass": {"rows", "drafted", "accepted", "emitted", "drafter", "source_line", "ms", "draft_ms"},
    "text": {"text", "spans"},
    "hunk": {"index", "header", "old_start", "old_lines", "new_start", "new_lines", "lines"},
    "warning": {"code", "message", "lines", "blocking"},
    "result": RESULT_FIELDS,
}
STATS = {
    *("prompt_tokens", "cached_tokens", "output_tokens", "ttft_s", "prefill_tok_s", "decode_tok_s", "wall_s"),
    *("passes", "drafted", "accepted", "acceptance", "tokens_per_pass", "copied_share", "policy_tokens"),
    *("by_drafter", "by_provenance", "drafter_s", "prediction", "peak_rss_bytes", "mean_logprob"),
    *("draft_model", "rerun_share"),
}


class Colour(Enum):
    RED = "red"


class Code(IntEnum):
    SEVEN = 7


@dataclass(frozen=True)
class Point:
    x: int
    name: tuple[str, ...]


def written(**fields: object) -> dict[str, Any]:
    """One line, as a reader of the stream has it."""
    stream = io.StringIO()
    JsonWriter(stream).write("kind", **fields)
    (line,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_line_has_version_type_and_time() -> None:
    stream = io.StringIO()
    moments = iter([10.0, 10.0, 10.25])
    writer = JsonWriter(stream, lambda: next(moments))
    writer.write("start")
    writer.result(outcome="changed", exit_code=Code.SEVEN, hunks=2)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"schema_version": 1, "type": "start", "t_ms": 0.0},
        {
            "schema_version": 1,
            "type": "result",
            "t_ms": 250.0,
            "outcome": "changed",
            "exit_code": 7,
            "error": None,
            "hunks": 2,
            "stats": None,
            "warnings": [],
            "receipt": None,
        },
    ]


def test_our_own_kinds_become_json_s() -> None:
    line = written(point=Point(1, ("a", "b")), colour=Colour.RED, path=Path("a/b"), by={Provenance.COPIED: 3})
    assert line["point"] == {"x": 1, "name": ["a", "b"]}
    assert (line["colour"], line["path"], line["by"]) == ("red", "a/b", {"copied": 3})


def test_unknown_is_null() -> None:
    assert written(value=None)["value"] is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"deep": [float("nan")]}])
def test_what_json_does_not_have_is_refused_and_nothing_is_written(value: object) -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="JSON"):
        JsonWriter(stream).write("kind", value=value)
    assert stream.getvalue() == ""


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet=st.characters()))
def test_any_text_comes_back_whatever_the_stream_can_encode(text: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    JsonWriter(stream).write("kind", text=text)
    stream.seek(0)
    (line,) = stream.read().splitlines()
    assert json.loads(line)["text"] == text


def test_stray_bytes_of_a_name_come_back() -> None:
    name = os.fsdecode(b"caf\xe9\n.py")
    assert os.fsencode(written(path=Path(name))["path"]) == b"caf\xe9\n.py"


def test_a_line_can_be_read_before_the_next_is_written() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="utf-8") as stream, os.fdopen(reader, encoding="utf-8") as other:
        JsonWriter(stream).write("start")
        assert json.loads(other.readline())["type"] == "start"


def test_plain_data_leaves_plain_data_alone() -> None:
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": []}}
    assert plain_data(value) == value


def lines_of(file: Path, reply: str = CHANGED, **options: Any) -> list[dict[str, Any]]:
    return run_edit(ScriptedClient(fenced(reply)), file, json=True, **options).lines


def test_every_type_has_its_fields(file: Path) -> None:
    lines = lines_of(file, CHANGED.replace("low = min(items)", "low = min(items"))
    assert {line["type"] for line in lines} == FIELDS.keys()
    for line in lines:
        assert line.keys() == FIELDS[line["type"]] | LINE_FIELDS


def test_start_says_what_is_edited_by_what(file: Path) -> None:
    start = lines_of(file)[0]
    assert start["file"] == {
        "path": str(file),
        "sha256": start["file"]["sha256"],
        "lines": SOURCE.count("\n"),
        "encoding": "utf-8",
        "newline": "lf",
    }
    assert start["model"] == {
        "id": "scripted",
        "sha256": "5" * 64,
        "device": "cpu",
        "threads": 2,
        "exactness": "exact",
        "policy": "strict",
        "reached": "in this process",
        "backend": None,
        "arithmetic": None,
        "draft_model": None,
        "choice": None,
        "notes": [],
    }
    assert start["cached_tokens"] == 0
    assert not start["estimated"] and start["prompt_tokens"] < start["max_tokens"] < start["context_tokens"]
    assert start["expected_s"] is None  # nothing was measured here before
    assert lines_of(file)[0]["expected_s"] > 0


def test_stats_have_every_field_and_null_for_what_is_unknown(file: Path) -> None:
    stats = lines_of(file)[-1]["stats"]
    assert stats.keys() == STATS
    assert stats["peak_rss_bytes"] is None and stats["mean_logprob"] is None
    assert stats["draft_model"] is None and stats["rerun_share"] is None
    assert stats["policy_tokens"] == 0
    assert stats["by_drafter"].keys() == {"cursor"}
    assert stats["by_drafter"]["cursor"].keys() == {"drafted", "accepted"}
    assert sum(stats["by_provenance"].values()) == stats["output_tokens"]
    assert stats["acceptance"] == 1.0


def test_without_drafts_acceptance_is_unknown_and_not_nought(file: Path) -> None:
    lines = lines_of(file, draft=False)
    stats = lines[-1]["stats"]
    assert (stats["drafted"], stats["acceptance"]) == (0, None)
    assert {line["drafter"] for line in lines if line["type"] == "pass"} == {None}


def test_passes_and_spans_add_up(file: Path) -> None:
    lines = lines_of(file)
    passes = [line for line in lines if line["type"] == "pass"]
    texts = [line for line in lines if line["type"] == "text"]
    assert sum(line["emitted"] for line in passes) == lines[-1]["stats"]["output_tokens"]
    assert all(sum(span["chars"] for span in line["spans"]) == len(line["text"]) for line in texts)
    assert {span["provenance"] for line in texts for span in line["spans"]} <= {kind.value for kind in Provenance}
    assert all(span.keys() == {"chars", "provenance", "source_line"} for line in texts for span in line["spans"])


def test_hunks_say_their_lines_with_their_ends(file: Path) -> None:
    file.write_bytes(b"a\nb\r\nc")
    (hunk,) = [line for line in lines_of(file, "a\nB\nc\n") if line["type"] == "hunk"]
    assert hunk["lines"] == [" a\n", "-b\r\n", "+B\n", " c"]
    assert (hunk["old_start"], hunk["old_lines"], hunk["new_start"], hunk["new_lines"]) == (1, 3, 1, 3)
