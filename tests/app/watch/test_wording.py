"""Every event has a sentence that is safe to print and fields that are JSON."""

import io
import json
from pathlib import Path

import pytest

from app.editing.apply import Receipt
from app.editing.proposals import StoredProposal
from app.errors import ExitCode, FileEmptyError
from app.json_events import JsonWriter
from app.watch.events import (
    Applied,
    Failed,
    Held,
    Note,
    Proposed,
    Ready,
    Status,
    StatusChanged,
    Superseded,
    Timing,
    Unchanged,
    WatchEvent,
)
from app.watch.wording import event_fields, event_sentence
from app.watch_report import JsonListener, TalkListener
from tests.support.headless_edit import Terminal

PATH = "/a\x1b[31m\udcff.py"
TIMING = Timing(0.25, 1.0, 2.0, 3.0, 6.25)
STORED = StoredProposal(
    "0123456789ab", PATH, "Do it.", "m", 1e9, "b" * 64, 1, "n" * 64, 1, "utf-8", 2,
    ({"code": "churn", "message": "Spaces.", "lines": [1], "blocking": False},),
)  # fmt: skip
EVENTS: list[tuple[WatchEvent, str, str]] = [
    (Ready((PATH,), 2, 10, True, 0.5), "ready", "10 files in 2 folders"),
    (Ready((PATH,), 2, 10, False, 0.5), "ready", "looked at again and again"),
    (StatusChanged(Status("running", PATH, (PATH, PATH), 3)), "status", "2 queued, 3 to review"),
    (StatusChanged(Status("idle", None, (), None)), "status", "idle"),
    (
        Proposed(STORED, TIMING),
        "proposal",
        "2 hunks, 6.2 s after the save (settled 0.25, waited 1.0, read 2.0, wrote 3.0)",
    ),
    (Proposed(STORED, TIMING, "It is busy."), "proposal", "Not applied: It is busy."),
    (
        Applied(PATH, Receipt(PATH, "b", "a", True, True, "id"), Timing(0.3, 0.0, None, None, 1.0)),
        "applied",
        "redraft undo",
    ),
    (Unchanged(PATH), "unchanged", "no change needed"),
    (Superseded(PATH), "superseded", "saved again"),
    (Held(PATH, 12.0), "held", "held back for 12 s"),
    (Failed(PATH, FileEmptyError("It is empty.")), "failed", "It is empty."),
    (Failed("/a.py", FileEmptyError("/a.py is empty.")), "failed", "/a.py is empty."),
    (Ready((PATH,), 1, 1, True, 0.5), "ready", ": 1 file in 1 folder, after"),
    (Note("Something."), "note", "Something."),
]


@pytest.mark.parametrize(
    ("event", "kind", "said"), EVENTS, ids=[f"{kind}-{number}" for number, (_, kind, _) in enumerate(EVENTS)]
)
def test_events_are_worded(event: WatchEvent, kind: str, said: str) -> None:
    sentence = event_sentence(event)
    assert said in sentence and sentence.isprintable() and "\x1b" not in sentence
    found, fields = event_fields(event)
    assert found == kind and json.loads(json.dumps(fields, allow_nan=False))


def test_a_terminal_keeps_the_state_on_its_last_line() -> None:
    out = io.BytesIO()
    stream = Terminal(out, encoding="utf-8", newline="", write_through=True)
    listener = TalkListener(stream, quiet=False)
    for event, _, _ in EVENTS:
        listener.hear(event)
    listener.note("On the side.")
    assert listener.failed(FileEmptyError("It is empty.")) is ExitCode.FILE
    text = out.getvalue().decode()
    assert "\r\x1b[Kidle" in text and "\r\x1b[KOn the side.\n" in text
    assert text.endswith("redraft: It is empty.\n")
    assert "\x1b[31m" not in text


def test_off_a_terminal_there_is_no_status_and_quiet_says_failures_only() -> None:
    for quiet in (False, True):
        stream = io.StringIO()
        listener = TalkListener(stream, quiet)
        for event, _, _ in EVENTS:
            listener.hear(event)
        lines = stream.getvalue().splitlines()
        assert "\x1b" not in stream.getvalue()
        assert len(lines) == (2 if quiet else len(EVENTS) - 2)


def test_json_counts_what_happened(tmp_path: Path) -> None:
    stream = io.StringIO()
    listener = JsonListener(JsonWriter(stream))
    for event, _, _ in EVENTS:
        listener.hear(event)
    assert listener.finished(ExitCode.OK) is ExitCode.OK
    result = json.loads(stream.getvalue().splitlines()[-1])
    assert (result["outcome"], result["proposals"], result["applied"], result["failed"]) == ("applied", 2, 1, 2)
    (applied,) = (json.loads(line) for line in stream.getvalue().splitlines() if '"type": "applied"' in line)
    assert result["receipt"] == applied["receipt"]
    assert result["receipt"]["after_sha256"]


def test_json_says_when_nothing_came_of_a_watch() -> None:
    stream = io.StringIO()
    listener = JsonListener(JsonWriter(stream))
    assert listener.finished(ExitCode.OK) is ExitCode.OK
    result = json.loads(stream.getvalue())
    assert (result["outcome"], result["receipt"]) == ("unchanged", None)
