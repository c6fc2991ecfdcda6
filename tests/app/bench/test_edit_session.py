"""A session on an engine that answers from a script: what is compared, what the next turn gets, what is counted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from app.bench.edit_session import run_session
from app.bench.session_figures import table
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
    """Gives `texts` turn by turn; plain at 10 tok/s, drafted at `speeds` tok/s turn by turn.

    After its last turn the first one comes again.
    """

    def __init__(self, texts: Sequence[str], speeds: Sequence[float], reason: FinishReason = FinishReason.STOP_LINE):
        self.requests: list[CompletionRequest] = []
        """Those that were answered, so none that only fills the cache."""
        self.filled = 0
        """Requests that only fill the cache."""
        self.slower = 1.0
        """How many times slower everything is when the first turn comes again."""
        self.break_turn: int | None = None
        """The turn whose drafted ids differ."""
        self._texts, self._speeds, self._reason = texts, speeds, reason
        self._prompts: list[str] = []

    def count(self, request: CompletionRequest) -> tuple[int, int]:
        self._prompts.append(request.messages[-1].content)
        return len(request.messages[-1].content), len(request.source)

    def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]:
        if request.max_tokens == 0:
            self.filled += 1
            yield Finished(FinishReason.LENGTH, (), STATS)
            return
        self.requests.append(request)
        turn = len(self._prompts) - 1
        again, turn = turn >= len(self._texts) > 1, turn % len(self._texts) if turn >= 0 else turn
        slower = self.slower if again else 1.0
        yield Started(50, 0, 10)
        if turn < 0:  # warm-up
            yield Finished(FinishReason.STOP, (1,), STATS)
            return
        yield Text(self._texts[turn], ())
        ids = (*range(10), turn)
        stats = replace(STATS, decode_tok_s=10.0 / slower, passes=10)
        if request.draft:
            yield Pass(4, 3, 2, 3, "cursor", 1, 40.0)
            rate = self._speeds[turn] / slower
            stats = replace(stats, decode_tok_s=rate, passes=5, drafted=8, accepted=6, drafter_s=0.01)
            if turn == self.break_turn:
                ids = (*ids[:4], 63, *ids[5:])
        yield Finished(self._reason, ids, replace(stats, mean_logprob=-float(turn) if request.score else None))


def quiet(_: str) -> None:
    pass


def model(context: int = 4096) -> FakeModel:
    return FakeModel(pseudo_random(64), context=context)


class FullModel(FakeModel):
    """No room left in its cache, but for one token."""

    def __init__(self) -> None:
        super().__init__(pseudo_random(64), context=4096)
        self.cache = [0] * 4095


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
    assert sources == [SOURCE, changed, changed, SOURCE]
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
    assert fields["worst_turn_speed_up"] == 0.5 and fields["drafter_share"] == pytest.approx(0.04 / 2.75)
    assert (fields["acceptance"], fields["tokens_per_pass"]) == (0.75, 44 / 20)
    assert fields["outside_passes_share"] == pytest.approx(1 - 4 * 0.04 / 2.75)
    # The fake has 8 rows at most and every pass takes one tick.
    assert [(turn.ceiling, turn.best_rows) for turn in figures.turns] == [(8.0, 8)] * 4
    shares = [turn.share_of_ceiling for turn in figures.turns]
    assert [share and share.runs for share in shares] == [(5.0,)] * 3 + [(5.0 / 8.0,)]
    assert fields["identical_turns"] == 4 and fields["share_of_ceiling"] == 5.0
    assert "same ids      4 of 4 turns, and the first again at the end" in table(figures)


def test_stability_is_the_first_turn_against_itself_at_the_end() -> None:
    """Turns that draft better or worse than the first one say nothing about a session that slows down."""
    engine = ScriptedEngine([SOURCE] * 4, [40.0, 5.0, 5.0, 5.0])
    engine.slower = 1.25
    figures = run_session(session("a", "b", "c", "d"), engine, model(), 2, quiet, Ticks())
    stable = [figures.stability_on, figures.stability_off]
    assert [spread and spread.runs for spread in stable] == [(0.8, 0.8)] * 2
    assert figures.same_at_the_end is True and len(figures.turns) == 4
    words = table(figures)
    assert "stability on  0.80 (0.80-0.80) in 2 runs" in words and "drafter alone" in words
    alone = run_session(session("a"), ScriptedEngine([SOURCE], [40.0]), model(), 1, quiet, Ticks())
    assert (alone.stability_on, alone.closing, alone.same_at_the_end) == (None, None, None)


def test_other_ids_at_the_end_of_the_session_are_found() -> None:
    engine = ScriptedEngine([SOURCE] * 2, [20.0] * 2)
    figures = run_session(session("a", "b"), engine, model(), 1, quiet, Ticks())
    assert figures.closing is not None
    (answer,) = figures.closing.off
    other = replace(answer, finished=replace(answer.finished, token_ids=(*answer.finished.token_ids, 1)))
    late = replace(figures, closing=replace(figures.closing, off=(other,)))
    assert late.same_at_the_end is False and "NOT the first again at the end" in table(late)


class Slowing(Ticks):
    """Passes of three widths before the reply take 1 s each, all after it 3 s."""

    def __call__(self) -> float:
        self.now += 1.0 if self.now < 6.0 else 3.0
        return self.now


def test_the_ceiling_is_that_of_the_middle_of_the_reply_and_of_several_passes() -> None:
    """Passes right before and right after every drafted run, as many as the repeats leave to be done."""
    for repeats, rounds in ((1, 3), (3, 1), (5, 1)):
        engine, fake = ScriptedEngine([SOURCE], [2.0]), model()
        figures = run_session(session("a"), engine, fake, repeats, quiet, Ticks())
        assert engine.filled == repeats
        assert fake.passes == [2, 4, 8] * (2 * repeats * rounds)
        assert fake.cache == []
        spread = figures.turns[0].passes[8]
        assert len(spread.runs) == repeats
    slowing = run_session(session("a"), ScriptedEngine([SOURCE], [2.0]), model(), 3, quiet, Slowing())
    assert slowing.turns[0].passes[8].runs[0] == pytest.approx(2 * 8 / (1.0 + 3.0))


def test_without_room_for_a_wide_pass_there_is_no_ceiling() -> None:
    figures = run_session(session("a"), ScriptedEngine([SOURCE], [2.0]), FullModel(), 1, quiet, Ticks())
    turn = figures.turns[0]
    assert (turn.passes, turn.ceiling, turn.share_of_ceiling) == ({}, None, None)
    assert turn.fields()["share_of_ceiling"] is None and " - " in table(figures)


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
    assert "NO at 4" in table(figures) and "same ids      1 of 2 turns" in table(figures)


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
