"""Every way in which a run in the workspace can end but well: stopped, failed, refused, or by a fault of ours."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from rich.text import Text

from app.errors import EngineUnreachableError, MemoryLimitError, ModelError
from app.paths import state_dir
from app.tui.app import RedraftApp
from app.tui.messages import ReviewChanged
from app.tui.widgets.status_line import StatusLine
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, endless, fenced, unending
from tests.support.tui import Session, drive


def test_escape_stops_the_run_and_the_next_one_works(file: Path) -> None:
    looked = asyncio.Event()
    client = ScriptedClient(fenced(CHANGED), at_token={30: looked.wait})

    async def steps(session: Session) -> None:
        await session.type("Do.")
        await session.pilot.press("enter")
        await session.until(lambda: client.open_calls == 1 and session.workspace.status.figures.passes > 0)
        assert session.workspace.at_work and session.workspace.status.state == "writing"
        await session.pilot.press("f5")
        assert session.said()[-1] == "The model is at work; escape stops it."
        await session.pilot.press("escape")
        assert session.workspace.status.state == "stopping"
        looked.set()
        await session.settle()
        assert client.open_calls == 0
        assert not session.workspace.at_work and session.workspace.status.state == "ready"
        assert session.last_turn().failure == session.said()[-1]
        await session.press("f5")
        assert session.last_turn().proposal is not None and session.last_turn().instruction == "Do."

    drive(client, steps, file=file)
    assert file.read_text() == SOURCE


def test_an_engine_that_does_not_stop_is_given_up(file: Path) -> None:
    never = asyncio.Event()
    hanging, other = ScriptedClient(fenced(CHANGED), at_token={5: never.wait}), ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.type("Do.")
        await session.pilot.press("enter")
        await session.until(lambda: hanging.open_calls == 1 and len(hanging.requests) == 2)
        await session.pilot.press("escape", "escape")
        await session.settle()
        assert session.last_turn().failure == "The engine did not answer and was given up; nothing was changed."
        assert hanging.closed and hanging.open_calls == 0
        await session.press("f5")
        assert session.last_turn().proposal is not None
        assert len(other.requests) == 2

    drive(hanging, steps, file=file, clients=[other])


def test_an_engine_that_dies_is_a_sentence(file: Path) -> None:
    def die() -> None:
        raise EngineUnreachableError("The engine died (signal 9); nothing was changed.")

    client = ScriptedClient(fenced(CHANGED), at_token={9: die})

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert session.said() == ["The engine died (signal 9); nothing was changed."]
        assert "The engine died" in session.shown()
        client.at_token.clear()
        await session.press("f5")
        assert session.last_turn().proposal is not None

    drive(client, steps, file=file)


def test_memory_that_runs_out_in_a_turn_takes_that_turn_only(file: Path) -> None:
    words = "Memory ran out in a pass; take a smaller context or model."

    def run_out() -> None:
        raise MemoryLimitError(words)

    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.decide(1)
        before = session.last_turn()
        client.at_token[9] = run_out
        await session.ask("And more.")
        turns = session.workspace.turns
        assert turns is not None
        assert session.said()[-1] == turns.turns[1].failure == words
        assert turns.turns[0] == before and session.workspace.status.state == "ready"
        assert file.read_text() == SOURCE
        client.at_token.clear()
        await session.press("f5")
        assert session.said()[-1].startswith("No change needed")  # the engine answers, on what the first turn left

    drive(client, steps, file=file)


def test_a_missing_model_is_said_once_and_the_program_stays(file: Path) -> None:
    missing = ModelError("No model is installed; `redraft models pull` fetches one.")
    client = ScriptedClient(fenced(CHANGED), failures={"describe": missing, "count": missing})

    async def steps(session: Session) -> None:
        assert session.said() == [str(missing)]
        assert "no engine" in session.shown() and "def total(items):" in session.shown()
        await session.ask("Do.")
        assert session.said()[-1] == str(missing)
        client.failures.clear()
        await session.press("f5")
        assert session.last_turn().proposal is not None

    drive(client, steps, file=file)


@pytest.mark.parametrize(
    ("client", "word"),
    [
        (ScriptedClient("I cannot do that.\n"), "nothing was changed"),
        (ScriptedClient(endless("spam ")), "nothing was changed"),
        (ScriptedClient(unending()), "cut"),
        (ScriptedClient(fenced("")), "empty"),
        (ScriptedClient(fenced(SOURCE)), "No change needed"),
        (ScriptedClient(fenced(CHANGED), context_length=300), "too long for this model"),
    ],
    ids=["no code", "endless", "cut", "empty", "unchanged", "too long"],
)
def test_a_reply_that_is_no_edit_is_a_sentence(file: Path, client: ScriptedClient, word: str) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert word in session.said()[-1]
        last = session.last_turn()
        assert last.failure == session.said()[-1] and last.proposal is None
        assert session.workspace.status.state == "ready"

    drive(client, steps, file=file)
    assert file.read_text() == SOURCE


def test_a_fault_of_a_worker_is_a_dialog_with_a_report(file: Path) -> None:
    def break_down() -> None:
        raise RuntimeError("a fault of [b]ours[/b] \x1b[31m")

    client = ScriptedClient(fenced(CHANGED), at_token={9: break_down})

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        shown = session.shown()
        assert "RuntimeError: a fault of [b]ours[/b] \\x1b[31m" in shown
        assert "Report:" in shown and "Traceback" not in shown
        await session.pilot.click("#copy-report")
        await session.settle()
        copied = (state_dir() / "copied.txt").read_text()
        assert copied.startswith("Traceback") and "break_down" in copied
        await session.pilot.click("#go-on")
        await session.settle()
        assert not session.workspace.at_work and session.workspace.status.state == "ready"
        client.at_token.clear()
        await session.press("f5")
        assert session.last_turn().proposal is not None

    drive(client, steps, file=file)
    assert file.read_text() == SOURCE


def test_a_fault_of_a_widget_ends_in_a_sentence_and_a_report(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apps: list[RedraftApp] = []

    def render(self: StatusLine) -> Text:
        apps.append(cast(RedraftApp, self.app))
        raise RuntimeError("a fault of ours\x1b[31m")

    async def steps(session: Session) -> None:
        monkeypatch.setattr(StatusLine, "render", render)
        session.workspace.query_one(StatusLine).refresh()
        await session.pilot.pause()
        await session.pilot.pause()

    client = ScriptedClient("")
    with pytest.raises(RuntimeError, match="a fault of ours"):
        drive(client, steps, file=file)
    said = capsys.readouterr().err
    assert "Redraft ended on an internal error, RuntimeError: a fault of ours\\x1b[31m." in " ".join(said.split())
    assert "Traceback" not in said and "Report:" in said
    assert apps[0].return_code == 1
    assert client.closed


def test_what_the_diff_says_after_a_run_has_failed_opens_no_review(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        review = session.last_turn().review
        assert review is not None
        client.reply = "No.\n"
        await session.press("f5")
        session.workspace.post_message(ReviewChanged(review))
        await session.settle()
        assert session.last_turn().failure is not None and session.last_turn().review is None
        assert session.workspace.status.state == "ready" and session.workspace.turns is not None
        assert [turn.number for turn in session.workspace.turns.waiting] == [1]  # what is left of it is not lost

    drive(client, steps, file=file)
