"""Pairs of tiny random models through the whole engine: the target's tokens, whatever the other one drafts."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from editor_engine.config import EngineConfig
from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.draft.pass_cost import PassCost
from editor_engine.engine import Engine
from editor_engine.errors import CancelledError, NumericsError, UnsupportedModelError
from editor_engine.events import DRAFT_MODEL, DraftModelStats, EngineEvent, Finished, FinishReason, Pass, Started
from editor_engine.loading import load
from editor_engine.models.sampling import distribution
from editor_engine.models.target import TargetModel
from editor_engine.request_tokens import tokenise
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from editor_engine.wire import identity_of
from tests.support.tiny_gguf import tiny_source, write_tiny

SOURCE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n" * 3


def request(text: str = "Change it.", *, draft: bool = True, max_tokens: int = 60, **more: object) -> CompletionRequest:
    return CompletionRequest(
        (Message("system", "You edit."), Message("user", f"{SOURCE}\n{text}")),
        max_tokens,
        draft=draft,
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A target and models that draft for it: itself, one of the same family, one of another, one nearly the same."""
    folder = tmp_path_factory.mktemp("pair")
    near = tiny_source("qwen2", seed=7)
    kind, dims, raw = near.tensors["output_norm.weight"]
    near.tensors["output_norm.weight"] = kind, dims, (np.frombuffer(raw, np.float32) * 0.7).tobytes()
    return [
        write_tiny(folder / "target.gguf", "qwen2", seed=7),
        write_tiny(folder / "other.gguf", "qwen2", seed=8),
        write_tiny(folder / "llama.gguf", "llama", seed=9),
        near.write(folder / "near.gguf"),
    ]


@pytest.fixture
def alone(paths: list[Path]) -> Engine:
    return Engine.load(EngineConfig(paths[0], threads=1))


def paired(target: Path, draft: Path, use: Use = Use.ALWAYS, **more: object) -> Engine:
    engine = Engine.load(EngineConfig(target, threads=1, draft_path=draft, **more))  # type: ignore[arg-type]
    pair_of(engine).use = use
    return engine


def pair_of(engine: Engine) -> DraftPair:
    assert engine.drafting.pair is not None
    return engine.drafting.pair


def finished(events: Iterator[EngineEvent]) -> Finished:
    *_, last = events
    assert isinstance(last, Finished)
    return last


def figures(done: Finished) -> DraftModelStats:
    assert done.stats.draft_model is not None
    return done.stats.draft_model


@pytest.mark.parametrize("draft", [0, 1, 2])
@pytest.mark.parametrize("use", list(Use))
@pytest.mark.parametrize("source", ["", SOURCE])
@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_ids_are_those_of_the_target_alone(
    paths: list[Path], alone: Engine, draft: int, use: Use, source: str, temperature: float
) -> None:
    engine = paired(paths[0], paths[draft], use)
    for question in ("Change it.", "写一个函数"):
        asked = request(question, source=source, temperature=temperature, seed=5)
        done = finished(engine.complete(asked))
        assert done.token_ids == finished(alone.complete(replace(asked, draft=False))).token_ids
        assert (done.stats.draft_model is None) == (use is Use.NEVER)


def test_a_model_that_drafts_for_itself_is_always_right_and_its_figures_add_up(paths: list[Path]) -> None:
    engine = paired(paths[0], paths[0])
    events = list(engine.complete(request()))
    done = events[-1]
    assert isinstance(done, Finished)
    draft = figures(done)
    drafted, accepted = done.stats.by_drafter[DRAFT_MODEL]
    assert all(seen == stood for seen, stood in draft.by_position)
    assert accepted == drafted == sum(stood for _, stood in draft.by_position) > 0
    assert draft.passes >= drafted and draft.seconds >= draft.read_s > 0
    assert done.stats.drafter_s is not None and done.stats.drafter_s >= draft.seconds
    assert draft.read_tokens >= (done.stats.prompt_tokens or 0)
    pair = pair_of(engine)
    assert draft.cache_bytes == pair.model.cache_bytes(pair.model.length) > 0
    assert draft.weights_bytes == engine.info.weights_bytes > 0
    assert isinstance(events[0], Started) and events[0].draft_model == pair.model.info.name
    assert sum(event.draft_ms for event in events if isinstance(event, Pass)) / 1000 >= draft.seconds


def test_without_a_draft_model_nothing_is_said_of_one(alone: Engine) -> None:
    events = list(alone.complete(request()))
    assert isinstance(events[0], Started) and events[0].draft_model is None
    assert finished(iter(events)).stats.draft_model is None
    assert finished(alone.complete(request())).stats.rerun_share is None


def test_the_load_says_who_drafts_and_what_both_take(paths: list[Path]) -> None:
    (note,) = paired(paths[0], paths[2]).notes
    assert note.startswith("Tiny llama drafts for Tiny qwen2 while that pays (") and note.endswith("MB).")


def test_the_draft_models_prompt_is_read_once(paths: list[Path], alone: Engine) -> None:
    engine = paired(paths[0], paths[1])
    first = figures(finished(engine.complete(request("First."))))
    done = finished(engine.complete(request("Second.")))
    assert first.read_tokens > 100 > figures(done).read_s
    prompt = done.stats.prompt_tokens or 0
    assert figures(done).read_tokens - len(done.token_ids) < prompt // 2
    assert done.token_ids == finished(alone.complete(request("Second.", draft=False))).token_ids


@pytest.mark.parametrize("after", [1, 3, 5, 8, 20])
def test_a_cancelled_request_leaves_both_models_usable(paths: list[Path], alone: Engine, after: int) -> None:
    engine, cancel = paired(paths[0], paths[1]), CancelFlag()
    events: list[EngineEvent] = []
    for event in engine.complete(request("Cancel me."), cancel):
        events.append(event)
        if len(events) == after:
            cancel.set()
    assert finished(iter(events)).reason is FinishReason.CANCELLED
    assert finished(engine.complete(request())).token_ids == finished(alone.complete(request())).token_ids


def test_a_cancel_reaches_the_draft_model_within_its_pass(
    paths: list[Path], alone: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, cancel = paired(paths[0], paths[1]), CancelFlag()
    model = pair_of(engine).model
    asked, passes = type(model).logits, []

    def logits(self: TargetModel, tokens: Sequence[int], *, head_rows: int) -> object:
        passes.append(tokens)
        if len(passes) == 4:
            cancel.set()
        return asked(self, tokens, head_rows=head_rows)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "logits", logits)
    assert finished(engine.complete(request(), cancel)).reason is FinishReason.CANCELLED
    assert len(passes) == 4
    monkeypatch.undo()
    assert finished(engine.complete(request())).token_ids == finished(alone.complete(request())).token_ids


def test_an_error_of_the_draft_model_is_told_and_the_reply_is_whole(
    paths: list[Path], alone: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = paired(paths[0], paths[1])

    def broken(tokens: Sequence[int], *, head_rows: int) -> object:
        raise NumericsError("A NaN came out of layer 3.")

    monkeypatch.setattr(pair_of(engine).model, "logits", broken)
    done = finished(engine.complete(request()))
    assert done.token_ids == finished(alone.complete(request())).token_ids
    assert figures(done).decision.endswith("was given up for this reply: A NaN came out of layer 3.")


def test_a_cancel_that_the_draft_model_invents_is_no_error(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = paired(paths[0], paths[1])

    def cancelled(tokens: Sequence[int], *, head_rows: int) -> object:
        raise CancelledError("The request was cancelled.")

    monkeypatch.setattr(pair_of(engine).model, "logits", cancelled)
    assert finished(engine.complete(request())).reason is FinishReason.CANCELLED


def test_another_vocabulary_is_refused_by_the_first_token_that_differs(paths: list[Path], tmp_path: Path) -> None:
    other = tiny_source("llama", seed=3)
    tokens = list(other.metadata["tokenizer.ggml.tokens"])  # type: ignore[call-overload]
    at = next(index for index, token in enumerate(tokens) if token == "return")
    tokens[at] = "retour"
    other.metadata["tokenizer.ggml.tokens"] = tokens
    merges = other.metadata["tokenizer.ggml.merges"]
    assert isinstance(merges, list)
    kept = [merge for merge in merges if not "".join(merge.split(" ")).endswith("return")]
    other.metadata["tokenizer.ggml.merges"] = kept
    path = other.write(tmp_path / "other.gguf")
    with pytest.raises(UnsupportedModelError, match=f"Tiny llama cannot draft for Tiny qwen2.*Token {at} is 'return'"):
        Engine.load(EngineConfig(paths[0], threads=1, draft_path=path))


def test_what_was_learned_of_a_pair_is_kept_beside_the_targets_costs(paths: list[Path]) -> None:
    engine = paired(paths[0], paths[2], Use.MEASURED)
    pair_of(engine).gain.attempted("text greedy", 2.0, 1.0)
    measured = [figures(finished(engine.complete(request()))).gain]
    pair_of(engine).use = Use.ALWAYS
    measured.append(figures(finished(engine.complete(request()))).gain)
    again = pair_of(paired(paths[0], paths[2], Use.MEASURED))
    assert again.gain.measured("text greedy") == measured[0] != measured[1]


def with_clock(target: Path, draft: Path, rule: str) -> Engine:
    """On a clock of our own, so that the same draws are made every time."""
    clock = itertools.count().__next__
    first, second = (load(EngineConfig(path, threads=1)) for path in (target, draft))
    pair = DraftPair(second.model, first.model.info, first.tokenizer.vocab_size, clock=clock)
    pair.use = Use.ALWAYS
    assert first.template is not None
    engine = Engine(first.model, first.tokenizer, first.template, pair=pair, draft_rule=rule, clock=clock)
    engine.drafting._costs.cost = PassCost.flat()  # a row costs nothing, so that even a doubtful draft is verified
    return engine


def test_by_the_rejection_rule_greedy_text_is_the_targets(paths: list[Path], alone: Engine) -> None:
    engine = with_clock(paths[0], paths[1], "rejection")
    assert finished(engine.complete(request())).token_ids == finished(alone.complete(request())).token_ids


@pytest.mark.parametrize(("rule", "promised"), [("same-ids", "exact"), ("rejection", "exact when greedy")])
def test_no_more_is_promised_than_the_rule_keeps(paths: list[Path], alone: Engine, rule: str, promised: str) -> None:
    engine, seeds = with_clock(paths[0], paths[3], rule), range(8)
    assert identity_of(engine.info, (), "served").guarantee == promised
    by_seed = [
        [finished(one.complete(request(temperature=1.0, seed=seed))).token_ids for seed in seeds]
        for one in (engine, alone)
    ]
    assert (by_seed[0] == by_seed[1]) == (promised == "exact")


def test_without_a_draft_model_the_rule_takes_nothing_back(paths: list[Path]) -> None:
    assert Engine.load(EngineConfig(paths[0], threads=1, draft_rule="rejection")).info.guarantee == "exact"


def test_by_the_rejection_rule_sampled_text_has_the_targets_distribution(paths: list[Path]) -> None:
    """The second token of many replies, in eight classes, against its exact chances summed over all first tokens."""
    engine = with_clock(paths[0], paths[3], "rejection")
    temperature, classes, count = 1.0, 8, 800
    found, stood, drafted = np.zeros(classes), 0, 0
    for seed in range(count):
        done = finished(engine.complete(request(max_tokens=3, temperature=temperature, seed=seed)))
        if len(done.token_ids) > 1:
            found[done.token_ids[1] % classes] += 1
        hit = done.stats.by_drafter.get(DRAFT_MODEL, (0, 0))
        drafted, stood = drafted + hit[0], stood + hit[1]
    assert count / 3 < stood < drafted < 2 * count
    chances = second_token(engine, temperature)
    expected = np.bincount(np.arange(len(chances)) % classes, weights=chances) * count
    chi_square = float(((found - expected) ** 2 / expected).sum())
    # 8 classes and the replies that ended before it; the draws are fixed by their keys. 26.1 is p = 0.001 of 8 degrees.
    assert chi_square < 26.1


def second_token(engine: Engine, temperature: float) -> np.ndarray:
    tokens = tokenise(request(), engine._tokenizer, engine._template).prompt
    model, stops = engine._model, engine._tokenizer.stop_ids
    model.truncate(0)
    for start in range(0, len(tokens), model.rows):
        logits = model.logits(tokens[start : start + model.rows], head_rows=1)
    first = distribution(logits[0], temperature)
    second = np.zeros_like(first)
    for token, chance in enumerate(first):
        if token in stops:
            continue
        second += chance * distribution(model.logits([token], head_rows=1)[0], temperature)
        model.truncate(len(tokens))
    return second


def test_by_the_rejection_rule_a_seed_gives_the_same_text_again(paths: list[Path]) -> None:
    texts = [
        finished(with_clock(paths[0], paths[3], "rejection").complete(request(temperature=1.0, seed=seed))).token_ids
        for seed in (3, 3, 4)
    ]
    assert texts[0] == texts[1] != texts[2]
    scored = finished(with_clock(paths[0], paths[3], "rejection").complete(request(temperature=1.0, seed=3)))
    assert scored.stats.mean_logprob is not None and scored.stats.mean_logprob < 0


@pytest.mark.model
def test_real_weights_that_draft_for_themselves_are_always_right(qwen05_path: Path) -> None:
    engine = Engine.load(EngineConfig(qwen05_path, draft_path=qwen05_path, context_length=1024))
    pair_of(engine).use = Use.ALWAYS
    asked = CompletionRequest((Message("user", "Write a Python function that adds two numbers."),), 24)
    done = finished(engine.complete(asked))
    draft = figures(done)
    assert draft.by_position and all(seen == stood for seen, stood in draft.by_position)
    assert done.token_ids == finished(engine.complete(replace(asked, draft=False))).token_ids


@pytest.mark.slow
@pytest.mark.model
def test_the_small_model_drafts_for_the_large_one(qwen05_path: Path, qwen15_path: Path) -> None:
    engine = Engine.load(EngineConfig(qwen15_path, draft_path=qwen05_path, context_length=2048))
    pair_of(engine).use = Use.ALWAYS
    asked = CompletionRequest((Message("user", "Write a Python class for a bounded queue, with tests."),), 160)
    done = finished(engine.complete(asked))
    assert done.token_ids == finished(engine.complete(replace(asked, draft=False))).token_ids
    (seen, stood), *_ = figures(done).by_position
    assert stood / seen > 0.4
