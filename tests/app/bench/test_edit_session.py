"""A session on an engine that answers from a script: what is compared, what the next turn gets, what is counted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from app.bench.edit_session import run_session, table
from app.bench.turns import Turn
from app.editing.language import detect_language
from app.errors import FileTooLongError
from editor_engine.errors import RequestError
from editor_engine.events import EngineEvent, Finished, FinishReason, Pass, Started, Stats, Text
from editor_engine.requests import CompletionRequest
from tests.support.fake_model import FakeModel, pseudo_random

PYTHON = detect_language("x.py")
SOURCE = "a = 1\nb = 2\nc = 3\n"
STATS = Stats(50, 0, 11, 0.5, 100.0, None, 2.0, 5, 0, 0)


class ScriptedEngine:
    """Gives `texts` turn by turn; plain at 10 tok/s, drafted at `speeds` tok/s turn by turn."""

    def __init__(self, texts: Sequence[str], speeds: Sequence[float], reason: FinishReason = FinishReason.STOP_LINE):
        self.requests: list[CompletionRequest] = []
        self.break_turn: int | None = None
        """The turn whose drafted ids differ."""
        self._texts, self._speeds, self._reason = texts, speeds, reason
        self._prompts: list[str] = []

    def count(self, request: CompletionRequest) -> tuple[int, int]:
        self._prompts.append(request.messages[-1].content)
        return len(request.messages[-1].content), len(request.source)

    def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]:
        self.requests.append(request)
        turn = len(self._prompts) - 1
        yield Started(50, 0, 10)
        if turn < 0:  # warm-up
            yield Finished(FinishReason.STOP, (1,), STATS)
            return
        yield Text(self._texts[turn], ())
        ids = (*range(10), turn)
        stats = replace(STATS, decode_tok_s=10.0, passes=10)
        if request.draft:
            yield Pass(4, 3, 2, 3, "cursor", 1, 40.0)
            stats = replace(stats, decode_tok_s=self._speeds[turn], passes=5, drafted=8, accepted=6)
            if turn == self.break_turn:
                ids = (*ids[:4], 63, *ids[5:])
        yield Finished(self._reason, ids, replace(stats, mean_logprob=-float(turn) if request.score else None))


def quiet(_: str) -> None:
    pass


def model(context: int = 4096) -> FakeModel:
    return FakeModel(pseudo_random(64), context=context)


def session(*kinds: str) -> list[Turn]:
    return [Turn(kind, f"Do {kind}.", SOURCE if number == 0 else None, PYTHON) for number, kind in enumerate(kinds)]


class Ticks:
    """A clock that moves one second a look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_both_sides_get_the_same_request_in_turns() -> None:
    engine = ScriptedEngine([SOURCE.replace("1", "9")], [20.0])
    figures = run_session(session("fix"), engine, model(), 2, quiet, Ticks())
    _, *asked = engine.requests
    assert [request.draft for request in asked] == [False, True, True, False]
    assert len({replace(request, draft=True) for request in asked}) == 1
    (turn,) = figures.turns
    assert (len(turn.off), len(turn.on), turn.outcome) == (2, 2, "changed")
    assert turn.speed_up is not None and turn.speed_up.runs == (2.0, 2.0)


def test_the_next_turn_gets_the_file_as_it_was_left_and_a_refused_reply_leaves_it() -> None:
    changed = SOURCE.replace("a = 1", "a = 9")
    engine = ScriptedEngine([changed, changed, ""], [20.0] * 3)
    figures = run_session(session("one", "two", "three"), engine, model(), 1, quiet, Ticks())
    assert [turn.outcome for turn in figures.turns] == ["changed", "unchanged", "reply_empty"]
    sources = [request.source for request in engine.requests[1:] if request.draft]
    assert sources == [SOURCE, changed, changed]
    assert figures.fields()["whole_replies"] == 2


def test_a_cut_reply_is_named() -> None:
    engine = ScriptedEngine([SOURCE], [20.0], FinishReason.LENGTH)
    assert run_session(session("one"), engine, model(), 1, quiet, Ticks()).turns[0].outcome == "reply_cut"


def test_the_session_adds_up_tokens_and_time() -> None:
    engine = ScriptedEngine([SOURCE] * 4, [40.0, 40.0, 40.0, 5.0])
    figures = run_session(session("a", "b", "c", "d"), engine, model(), 1, quiet, Ticks())
    fields = figures.fields()
    # 10 tokens each after the first: 0.25 s three times, then 2 s; plain 1 s each.
    assert figures.on_tok_s is not None and figures.on_tok_s.median == pytest.approx(40 / 2.75)
    assert figures.speed_up is not None and figures.speed_up.median == pytest.approx(4 / 2.75)
    assert (fields["worst_turn_speed_up"], fields["stability_on"], fields["stability_off"]) == (0.5, 0.125, 1.0)
    assert (fields["acceptance"], fields["tokens_per_pass"]) == (0.75, 44 / 20)
    assert fields["outside_passes_share"] == pytest.approx(1 - 4 * 0.04 / 2.75)
    # The fake has 8 rows at most and every pass takes one tick.
    assert [turn.ceiling for turn in figures.turns] == [8.0] * 4
    assert figures.turns[3].share_of_ceiling == 5.0 / 8.0
    assert fields["identical_turns"] == 4
    words = table(figures)
    assert "same ids     4 of 4 turns" in words and "stability on 0.12" in words


def test_log_likelihood_is_weighted_by_tokens_and_unknown_where_it_was_not_asked_for() -> None:
    engine = ScriptedEngine([SOURCE] * 2, [20.0] * 2)
    figures = run_session(session("a", "b"), engine, model(), 1, quiet, Ticks(), score=True)
    assert all(request.score for request in engine.requests[1:])
    # The script scores turn n with -n.
    assert figures.fields()["mean_logprob"] == -0.5
    plain = run_session(session("a"), ScriptedEngine([SOURCE], [20.0]), model(), 1, quiet, Ticks())
    assert plain.fields()["mean_logprob"] is None


def test_other_tokens_with_drafting_are_found() -> None:
    engine = ScriptedEngine([SOURCE] * 2, [20.0] * 2)
    engine.break_turn = 1
    said: list[str] = []
    figures = run_session(session("a", "b"), engine, model(), 2, said.append, Ticks())
    assert said[1] == "  unchanged, off 10.0, on 20.0 tok/s, same ids" and said[3].endswith("ids differ at 4")
    first, second = (turn.fields() for turn in figures.turns)
    assert (first["identical"], first["first_difference"]) == (True, None)
    assert (second["identical"], second["first_difference"]) == (False, 4)
    assert "NO at 4" in table(figures) and "same ids     1 of 2 turns" in table(figures)


def test_a_file_that_does_not_fit_is_refused_before_it_runs() -> None:
    engine = ScriptedEngine([SOURCE], [20.0])
    with pytest.raises(FileTooLongError):
        run_session(session("a"), engine, model(context=300), 1, quiet, Ticks())
    assert len(engine.requests) == 1


def test_an_engine_that_ends_without_a_result_is_an_error() -> None:
    class Silent(ScriptedEngine):
        def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]:
            yield Started(1, 0, 0)

    with pytest.raises(RequestError, match="without a result"):
        run_session(session("a"), Silent([], []), model(), 1, quiet, Ticks())
