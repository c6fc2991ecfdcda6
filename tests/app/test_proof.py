"""`edit --prove`: what is compared, what is said, and that nothing is written when drafting changed the output."""

from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import ExitCode
from editor_engine.events import EngineEvent, Finished
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.headless_edit import CHANGED, SOURCE, assert_untouched, run_edit, said_error
from tests.support.scripted_client import ScriptedClient, fenced


def by_way(drafted: str, plain: str) -> Callable[[CompletionRequest], Iterable[str]]:
    """A model that drafting changes."""
    return lambda request: fenced(drafted if request.draft else plain)(request)


class Nameless(ScriptedClient):
    """An engine that does not say which tokens it emitted."""

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        async for event in super().complete(request, cancel):
            yield replace(event, token_ids=()) if isinstance(event, Finished) else event


@pytest.mark.parametrize("draft", [True, False])
def test_both_ways_are_run_to_the_end_and_said_to_agree(file: Path, draft: bool) -> None:
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, prove=True, draft=draft, json=True)
    assert outcome.code == ExitCode.OK
    assert [request.draft for request in client.requests] == [draft, not draft]
    assert replace(client.requests[0], draft=not draft) == client.requests[1]
    stats = outcome.result["stats"]
    assert outcome.result["proof"] == {
        "exactness": "checked",
        "tokens": stats["output_tokens"],
        "drafted_s": 1.5,
        "plain_s": 1.5,
    }
    assert outcome.of_type("start") == outcome.of_type("start")[:1]  # the second way is no second edit


def test_a_person_reads_it_before_the_diff_is_applied(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, prove=True, apply=True)
    assert outcome.code == ExitCode.OK and file.read_text() == CHANGED
    assert "Decoding once more with drafting off." in outcome.err
    assert "checked: all " in outcome.err and "the same with drafting on (1.5 s) and off (1.5 s)." in outcome.err
    assert outcome.err.index("checked: ") < outcome.err.index("Applied to")


def test_without_the_option_nothing_is_decoded_twice(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))
    assert run_edit(client, file, json=True).result["proof"] is None
    assert len(client.requests) == 1


@pytest.mark.parametrize("kind", [ScriptedClient, Nameless])
@pytest.mark.parametrize("apply", [False, True])
def test_a_difference_is_exit_1_and_nothing_is_written(file: Path, apply: bool, kind: type[ScriptedClient]) -> None:
    client = kind(by_way(CHANGED, CHANGED.replace("low = min", "low = max")))
    outcome = run_edit(client, file, prove=True, apply=apply)
    assert outcome.code == ExitCode.REFUSED and outcome.out == b""
    place = "token" if kind is ScriptedClient else f"character {CHANGED.index('low = min') + len('low = m')}"
    assert f"Drafting changed the output at {place}" in said_error(outcome)
    assert_untouched(file)
    machine = run_edit(client, file, prove=True, apply=apply, json=True)
    assert (machine.result["outcome"], machine.result["error"]["code"]) == ("refused", "difference")
    assert machine.result["proof"] is None
    assert_untouched(file)


def test_where_tokens_have_no_names_the_text_is_compared_and_that_is_said(file: Path) -> None:
    outcome = run_edit(Nameless(fenced(CHANGED)), file, prove=True)
    assert outcome.code == ExitCode.OK and "checked: the text of the reply came out the same" in outcome.err
    assert run_edit(Nameless(fenced(CHANGED)), file, prove=True, json=True).result["proof"]["tokens"] is None


def test_a_reply_that_changes_nothing_is_proved_too(file: Path) -> None:
    client = ScriptedClient(by_way(SOURCE, CHANGED))
    assert run_edit(client, file, prove=True).code == ExitCode.REFUSED
    assert run_edit(ScriptedClient(fenced(SOURCE)), file, prove=True, json=True).result["proof"] is not None


def test_a_filter_gives_the_text_back_when_drafting_changed_it() -> None:
    client = ScriptedClient(by_way(CHANGED, SOURCE))
    outcome = run_edit(client, "-", stdin=SOURCE.encode(), prove=True)
    assert (outcome.code, outcome.out) == (ExitCode.REFUSED, SOURCE.encode())
