"""Runs `app.headless.edit` over a scripted client and takes down both streams, the exit code and the JSON lines.

Knows nothing of what is tested. Invariant: every run is held to the machine interface: with JSON the last line, and
only it, is a `result`; without, a failure is said on stderr and nowhere else.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from app.editing.journal import Journal
from app.engine_client import EngineClient
from app.errors import ExitCode
from app.headless import EditOptions, Streams, edit
from app.paths import journal_dir
from tests.support.scripted_client import ScriptedClient

SOURCE = '''"""Sums."""


def total(items):
    result = 0
    for item in items:
        result += item
    return result


def mean(items):
    if not items:
        return 0
    return total(items) / len(items)


def spread(items):
    low = min(items)
    high = max(items)
    return high - low
'''
CHANGED = SOURCE.replace("return 0", "return 0.0")
"""The file as a well-behaved reply has it."""

RESULT_FIELDS = {"outcome", "exit_code", "error", "hunks", "stats", "warnings", "receipt", "proof", "blast_radius"}
LINE_FIELDS = {"schema_version", "type", "t_ms"}


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Outcome:
    """What one run left behind."""

    code: int
    out: bytes
    err: str
    client: ScriptedClient
    lines: list[dict[str, Any]] = field(default_factory=list)
    """The JSON lines; empty without --json."""

    @property
    def result(self) -> dict[str, Any]:
        """The last JSON line."""
        return self.lines[-1]

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The JSON lines of a type."""
        return [line for line in self.lines if line["type"] == kind]


def run_edit(
    client: ScriptedClient,
    file: str | Path,
    *,
    stdin: bytes = b"",
    terminal: bool = False,
    instruction: str = "Do as scripted.",
    **options: Any,
) -> Outcome:
    """One edit. `terminal`: a person is at both ends, and types `stdin`."""
    kind = Terminal if terminal else io.TextIOWrapper
    out_bytes, err_bytes = io.BytesIO(), io.BytesIO()
    out = kind(out_bytes, encoding="utf-8", errors="backslashreplace", newline="")
    err = kind(err_bytes, encoding="utf-8", errors="backslashreplace", newline="")
    streams = Streams(io.BytesIO(stdin), out, out_bytes, err, terminal)
    order = EditOptions(str(file), instruction, **options)
    code = edit(order, lambda given: (given, cast(EngineClient, client)), streams)
    out.flush()
    err.flush()
    outcome = Outcome(code, out_bytes.getvalue(), err_bytes.getvalue().decode(), client, [])
    assert isinstance(code, ExitCode)
    assert client.open_calls == 0
    assert "Traceback" not in outcome.err
    errors = [line.encode() for line in outcome.err.splitlines() if line.startswith("redraft: ")]
    assert not any(line in outcome.out for line in errors), outcome.out
    assert (code == ExitCode.OK) == (not errors) or order.json, outcome.err
    if order.json:
        outcome.lines.extend(json.loads(line) for line in outcome.out.splitlines())
        assert_interface(outcome.lines, code)
        assert outcome.err == ""
    return outcome


def assert_interface(lines: Sequence[dict[str, Any]], code: int) -> None:
    """What json.md says of every run."""
    assert all(line["schema_version"] == 1 and line.keys() >= LINE_FIELDS for line in lines)
    times = [line["t_ms"] for line in lines]
    assert times == sorted(times)
    assert [line["type"] for line in lines].count("result") == 1
    last = lines[-1]
    assert last["type"] == "result"
    assert last.keys() == LINE_FIELDS | RESULT_FIELDS
    assert last["exit_code"] == code
    assert (last["error"] is None) == (code == 0)
    if last["error"] is not None:
        assert last["error"].keys() == {"code", "message"}
        assert_sentence(last["error"]["message"])


def assert_sentence(message: str) -> None:
    """One printable line that ends like a sentence."""
    assert message.isprintable()
    assert message[-1] in ".?!"


def said_error(outcome: Outcome) -> str:
    """The one sentence of a failed run without JSON."""
    found = [line for line in outcome.err.splitlines() if line.startswith("redraft: ")]
    assert len(found) == 1, outcome.err
    assert outcome.err.endswith(found[0] + "\n")
    assert_sentence(found[0])
    return found[0]


def assert_untouched(path: Path, source: str = SOURCE) -> None:
    """Neither the file, nor its folder, nor the journal has changed."""
    assert path.read_bytes() == source.encode()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert list(Journal(journal_dir()).entries()) == []
