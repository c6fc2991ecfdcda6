"""The pair's workload on tiny models: every way, the same ids, and an engine left as it was."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.bench.pair import BOTH, CHAIN, MODEL, PLAIN, PairTask, compare, table
from editor_engine.config import EngineConfig
from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.loading import load
from editor_engine.requests import CompletionRequest, Message
from tests.support.tiny_gguf import write_tiny

SOURCE = "def add(a, b):\n    return a + b\n" * 4
TASKS = [
    PairTask("edit", CompletionRequest((Message("user", f"{SOURCE}\nRename add."),), 30, source=SOURCE)),
    PairTask("free text", CompletionRequest((Message("user", "Say something."),), 30)),
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("pair") / "tiny.gguf", "qwen2", seed=7)


def test_every_way_answers_alike_and_the_engine_is_left_as_it_was(target: Path) -> None:
    engine = Engine.load(EngineConfig(target, threads=1, draft_path=target))
    pair, make = engine.drafting.pair, engine.drafting.make
    assert pair is not None
    said: list[str] = []
    figures = compare(engine, TASKS, 2, said.append)
    assert (pair.use, engine.drafting.make) == (Use.MEASURED, make)
    assert [task.name for task in figures] == ["edit", "free text"] and len(said) == 2 * 2 * 4
    for task in figures:
        assert task.difference is None
        assert all(len(way.runs) == 2 for way in task.ways.values())
        assert task.ways[PLAIN].last.stats.drafted == 0
        assert task.ways[CHAIN].draft is None is task.ways[PLAIN].draft
        alone = task.ways[MODEL]
        assert alone.last.stats.by_drafter.keys() == {"draft model"}
        assert alone.draft is not None and alone.draft.read_tokens >= (alone.last.stats.prompt_tokens or 0)
        assert task.ways[BOTH].draft is not None
    fields = json.loads(json.dumps([task.fields() for task in figures]))
    assert fields[0]["first_difference"] is None
    assert fields[0]["ways"][PLAIN]["tokens_per_pass"] == figures[0].ways[PLAIN].per_pass.fields()
    position = fields[0]["ways"][MODEL]["draft_model"]["by_position"][0]
    assert position["verified"] == position["accepted"] > 0
    assert "same ids in every run" in table(figures) and "both over text drafts" in table(figures)


def ticking(path: Path) -> Engine:
    """Every pass takes one tick, whatever its rows, so that costs are learned which no table says; so does one of the
    draft model, which is therefore never asked."""
    clock = itertools.count().__next__
    target, draft = (load(EngineConfig(path, threads=1)) for _ in range(2))
    pair = DraftPair(draft.model, target.model.info, target.tokenizer.vocab_size, clock=clock)
    return Engine(target.model, target.tokenizer, target.template or "", pair=pair, clock=clock)


def test_both_is_text_drafts_pass_for_pass_where_the_draft_model_is_not_asked(target: Path) -> None:
    engine = ticking(target)
    cost = engine.drafting.costs
    for rows in (1, 2, 4, 8) * 20:  # rows were as dear as steps till now
        cost.observe(rows, 0, float(rows))
    found = cost.snapshot()
    tasks = [PairTask(task.name, replace(task.request, max_tokens=100)) for task in TASKS]
    for task in compare(engine, tasks, 3, lambda words: None):
        passes = {way: [run.stats.passes for run in figures.runs] for way, figures in task.ways.items()}
        assert len({*passes[CHAIN], *passes[BOTH]}) == 1, passes
        assert passes[BOTH][0] < passes[PLAIN][0]
        assert all(run.stats.draft_model is not None for run in task.ways[BOTH].runs)
        assert all(run.stats.draft_model.passes == 0 for run in task.ways[BOTH].runs if run.stats.draft_model)
        assert task.ways[BOTH].per_pass.runs == task.ways[CHAIN].per_pass.runs
    assert cost.snapshot() == found


def test_what_a_measurement_teaches_no_edit_uses(target: Path) -> None:
    engine = ticking(target)
    pair = engine.drafting.pair
    assert pair is not None
    before = pair.gain.snapshot()
    figures = compare(engine, TASKS[:1], 1, lambda words: None)
    alone = figures[0].ways[MODEL].draft
    assert alone is not None and alone.passes > 0 and alone.gain is not None
    after = pair.gain.snapshot()
    assert (after["chances"], after["measured"]) == (before["chances"], before["measured"])


def test_a_pair_has_two_models(target: Path) -> None:
    with pytest.raises(RequestError, match="--draft-model"):
        compare(Engine.load(EngineConfig(target, threads=1)), TASKS, 1, lambda words: None)
