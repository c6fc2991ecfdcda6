"""The engine on tiny random models: same ids drafted or not, cached or not, cancelled before or not."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from editor_engine.config import EngineConfig
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.engine import Engine
from editor_engine.errors import ContextOverflowError, ModelMissingError, RequestError
from editor_engine.events import EngineEvent, Finished, FinishReason, Pass, Prefill, Provenance, Started, Text
from editor_engine.models.native.model import NativeModel
from editor_engine.request_tokens import tokenise
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from tests.support.tiny_gguf import write_tiny

SOURCE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n" * 3

EXAMPLE = Path(__file__).parents[2] / "examples" / "stockroom.py"


def request(text: str = "Change it.", *, draft: bool = True, max_tokens: int = 60, **more: object) -> CompletionRequest:
    return CompletionRequest(
        messages=(Message("system", "You edit."), Message("user", f"{SOURCE}\n{text}")),
        max_tokens=max_tokens,
        prefill="```python\n",
        source=SOURCE,
        draft=draft,
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module", params=["qwen2", "llama"])
def model_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf", request.param, seed=7)


@pytest.fixture
def engine(model_path: Path) -> Engine:
    return Engine.load(EngineConfig(model_path, threads=1))


def finished(events: Iterator[EngineEvent]) -> Finished:
    *_, last = events
    assert isinstance(last, Finished)
    return last


class Random:
    """Drafts a fixed sequence that has nothing to do with the text."""

    def __init__(self, prompt: Sequence[int], source: Sequence[int], stop_ids: object) -> None:
        self._tokens = itertools.cycle([*source[:40], *range(200)])

    def draft(self, room: int) -> Draft:
        return Draft(tuple(itertools.islice(self._tokens, room)), "random", 10**6)

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        return [Origin(Provenance.GENERATED, -5)] * len(emitted)


@pytest.mark.parametrize("question", ["Change it.", "Rename add.", "Entferne alles.", "写一个函数"])
def test_drafted_ids_are_plain_ids(engine: Engine, question: str) -> None:
    plain = finished(engine.complete(request(question, draft=False)))
    drafted = finished(engine.complete(request(question)))
    assert drafted.token_ids == plain.token_ids
    assert drafted.reason == plain.reason
    assert len(plain.token_ids) > 1


def test_a_random_drafter_changes_nothing(model_path: Path, engine: Engine) -> None:
    hostile = Engine.load(EngineConfig(model_path, threads=2))
    hostile.drafting.make = Random
    assert finished(hostile.complete(request())).token_ids == finished(engine.complete(request())).token_ids


@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2**70])
def test_drawn_ids_are_the_same_drafted_or_not(engine: Engine, temperature: float, seed: int) -> None:
    def run(draft: bool) -> Finished:
        return finished(engine.complete(request(draft=draft, temperature=temperature, seed=seed)))

    drafted, plain = run(True), run(False)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.mean_logprob == pytest.approx(plain.stats.mean_logprob, rel=1e-12)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_stop_text_ends_the_reply_at_the_same_token_drafted_or_not(engine: Engine, length: int) -> None:
    whole = list(engine.complete(request()))
    text = "".join(event.text for event in whole if isinstance(event, Text))
    stop = text[len(text) // 2 :][:length]

    def run(draft: bool) -> tuple[str, Finished]:
        events = list(engine.complete(request(draft=draft, stop=("never said at all", stop))))
        end = events[-1]
        assert isinstance(end, Finished)
        said = [event for event in events if isinstance(event, Text)]
        assert all(sum(span.chars for span in event.spans) == len(event.text) for event in said)
        return "".join(event.text for event in said), end

    drafted, plain = run(True), run(False)
    assert drafted[0] == plain[0] == text[: text.index(stop)]
    assert drafted[1].token_ids == plain[1].token_ids
    assert drafted[1].reason is FinishReason.STOP_TEXT
    assert drafted[1].token_ids == finished(iter(whole)).token_ids[: len(drafted[1].token_ids)]


def test_the_seed_matters_above_temperature_0_only(engine: Engine) -> None:
    def run(temperature: float, seed: int) -> tuple[int, ...]:
        return finished(engine.complete(request(temperature=temperature, seed=seed))).token_ids

    assert len({run(2.0, seed) for seed in range(4)}) == 4
    assert len({run(0.0, seed) for seed in range(4)}) == 1


def test_scoring_changes_no_token_and_is_the_mean_of_the_tokens(engine: Engine) -> None:
    fast = finished(engine.complete(request()))
    scored = finished(engine.complete(request(score=True)))
    assert fast.stats.mean_logprob is None
    assert scored.token_ids == fast.token_ids
    prompt = tokenise(request(), engine._tokenizer, engine._template).prompt
    model = engine._model
    assert isinstance(model, NativeModel)
    total = 0.0
    for at, token in enumerate(scored.token_ids):
        model.truncate(0)
        ahead = [*prompt, *scored.token_ids[:at]]
        for start in range(0, len(ahead), model.rows):
            logits = model.logits(ahead[start : start + model.rows], head_rows=1)[0].astype(float)
        total += logits[token] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    assert scored.stats.mean_logprob == pytest.approx(total / len(scored.token_ids), rel=1e-9)


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"temperature": float("nan")}, {"seed": -1}, {"stop": ("",)}])
def test_a_request_that_makes_no_sense_is_refused(engine: Engine, wrong: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        list(engine.complete(request(**wrong)))  # type: ignore[arg-type]


def test_events_come_in_order_and_cover_the_text(engine: Engine) -> None:
    events = list(engine.complete(request()))
    kinds = [type(event) for event in events]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    assert kinds.index(Pass) > max(index for index, kind in enumerate(kinds) if kind is Prefill)
    end = events[-1]
    assert isinstance(end, Finished)
    for event in events:
        if isinstance(event, Text):
            assert sum(span.chars for span in event.spans) == len(event.text)
            assert all(span.source_line is None or 1 <= span.source_line <= 19 for span in event.spans)
    passes = [event for event in events if isinstance(event, Pass)]
    assert sum(event.emitted for event in passes) + 1 == len(end.token_ids) == end.stats.output_tokens
    assert end.stats.passes == len(passes)
    assert sum(end.stats.by_provenance.values()) == len(end.token_ids)
    assert end.stats.drafted == sum(event.drafted for event in passes)
    assert end.stats.accepted == sum(event.accepted for event in passes)


def test_the_cached_prefix_is_reused_and_changes_nothing(model_path: Path, engine: Engine) -> None:
    first = finished(engine.complete(request("First question.")))
    again = finished(engine.complete(request("Second question.")))
    fresh = finished(Engine.load(EngineConfig(model_path, threads=1)).complete(request("Second question.")))
    assert first.stats.cached_tokens == 0
    assert again.stats.cached_tokens > again.stats.prompt_tokens // 2
    assert fresh.stats.cached_tokens == 0
    assert again.token_ids == fresh.token_ids


def test_conversations_that_take_turns_keep_their_prefixes_and_their_tokens(model_path: Path, engine: Engine) -> None:
    keeping = Engine.load(EngineConfig(model_path, threads=1, prefix_bytes=1 << 24))

    def other(text: str) -> CompletionRequest:
        return CompletionRequest((Message("system", "You talk."), Message("user", "1234567890 " * 12 + text)), 20)

    turns = [request("First."), other("one"), request("Second."), other("two"), request("First.")]
    ends = [finished(keeping.complete(turn)) for turn in turns]
    cached = [end.stats.cached_tokens or 0 for end in ends]
    assert [count > (end.stats.prompt_tokens or 0) // 2 for count, end in zip(cached, ends, strict=True)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert [end.token_ids for end in ends] == [finished(engine.complete(turn)).token_ids for turn in turns]


def test_the_same_request_needs_one_token_of_prefill(engine: Engine) -> None:
    first = finished(engine.complete(request()))
    again = finished(engine.complete(request()))
    assert again.stats.cached_tokens == again.stats.prompt_tokens - 1
    assert again.token_ids == first.token_ids


def test_zero_tokens_only_prefills(engine: Engine) -> None:
    end = finished(engine.complete(request(max_tokens=0)))
    assert end.token_ids == ()
    assert finished(engine.complete(request())).stats.cached_tokens == end.stats.prompt_tokens - 1


@pytest.mark.parametrize("after", [1, 2, 4, 7])
def test_a_cancelled_request_leaves_a_fresh_engine(model_path: Path, engine: Engine, after: int) -> None:
    cancel = CancelFlag()
    events: list[EngineEvent] = []
    for event in engine.complete(request("Cancel me."), cancel):
        events.append(event)
        if len(events) == after:
            cancel.set()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason is FinishReason.CANCELLED
    fresh = Engine.load(EngineConfig(model_path, threads=1))
    assert finished(engine.complete(request())).token_ids == finished(fresh.complete(request())).token_ids


@pytest.mark.parametrize("after", [1, 2, 4, 7])
def test_a_consumer_that_leaves_frees_the_engine(model_path: Path, engine: Engine, after: int) -> None:
    events = engine.complete(request("Leave me."))
    list(itertools.islice(events, after))
    events.close()  # type: ignore[attr-defined]
    fresh = Engine.load(EngineConfig(model_path, threads=1))
    assert finished(engine.complete(request())).token_ids == finished(fresh.complete(request())).token_ids


def test_a_flag_set_before_the_request_cancels_it(engine: Engine) -> None:
    cancel = CancelFlag()
    cancel.set()
    assert finished(engine.complete(request(), cancel)).reason is FinishReason.CANCELLED
    assert finished(engine.complete(request())).reason is not FinishReason.CANCELLED


def test_two_requests_at_once_are_refused(engine: Engine) -> None:
    first = engine.complete(request())
    next(first)
    with pytest.raises(RequestError, match="busy"):
        next(engine.complete(request()))
    first.close()  # type: ignore[attr-defined]
    assert finished(engine.complete(request())).token_ids


def test_a_prompt_longer_than_the_context_is_refused_with_numbers(model_path: Path) -> None:
    engine = Engine.load(EngineConfig(model_path, threads=1, context_length=64))
    with pytest.raises(ContextOverflowError, match="64"):
        list(engine.complete(request()))


def test_output_ends_at_the_context(model_path: Path, engine: Engine) -> None:
    prompt, _ = engine.count(request())
    small = Engine.load(EngineConfig(model_path, threads=1, context_length=prompt + 5))
    end = finished(small.complete(request()))
    assert end.token_ids == finished(engine.complete(request())).token_ids[: len(end.token_ids)]
    assert len(end.token_ids) <= 5
    if len(end.token_ids) == 5:
        assert end.reason is FinishReason.LENGTH


def test_an_empty_conversation_is_refused(engine: Engine) -> None:
    with pytest.raises(RequestError):
        list(engine.complete(CompletionRequest((), 5)))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError):
        Engine.load(EngineConfig(tmp_path / "none.gguf"))


@pytest.mark.model
@pytest.mark.parametrize("name", ["smollm2_path", "qwen05_path"])
def test_real_weights_drafted_ids_are_plain_ids(name: str, request: pytest.FixtureRequest) -> None:
    check_identity(request.getfixturevalue(name), 160)


@pytest.mark.slow
@pytest.mark.model
def test_the_larger_model_drafted_ids_are_plain_ids(qwen15_path: Path) -> None:
    check_identity(qwen15_path, 200)


def check_identity(path: Path, max_tokens: int) -> None:
    source = "".join(EXAMPLE.read_text("utf-8").splitlines(keepends=True)[:60])
    engine = Engine.load(EngineConfig(path))

    def run(draft: bool) -> Finished:
        task = f"```python\n{source}```\n\nRename the class Item to Article. Output only the whole file."
        messages = (Message("system", "You rewrite files."), Message("user", task))
        whole = CompletionRequest(
            messages, max_tokens, prefill="```python\n", source=source, stop_line="```", draft=draft
        )
        return finished(engine.complete(whole))

    drafted, plain = run(True), run(False)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.accepted > 0
    assert drafted.stats.passes < plain.stats.passes
