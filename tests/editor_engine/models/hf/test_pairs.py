"""Draft models through transformers: for a target of any family, for a native one, and the other way round."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from editor_engine.config import EngineConfig
from editor_engine.decode.draft_pair import Use
from editor_engine.draft.pass_cost import PassCost
from editor_engine.engine import Engine
from editor_engine.events import DRAFT_MODEL, Finished
from editor_engine.export import export_folder
from editor_engine.requests import CompletionRequest
from tests.support.hf_runs import random_edits
from tests.support.tiny_checkpoints import ARCHITECTURES
from tests.support.tiny_gguf import write_tiny


def always(target: Path, draft: Path, rule: str = "same-ids") -> Engine:
    engine = Engine.load(EngineConfig(target, threads=1, draft_path=draft, draft_rule=rule))
    assert engine.drafting.pair is not None
    engine.drafting.pair.use = Use.ALWAYS
    clock = itertools.count().__next__  # of our own: on a busy machine a draft may seem to cost more than it can save
    engine._clock = engine.drafting._clock = engine.drafting.pair._clock = clock
    engine.drafting._costs.cost = PassCost.flat()  # a row costs nothing, so that even a doubtful draft is verified
    return engine


def done(engine: Engine, request: CompletionRequest) -> Finished:
    *_, last = engine.complete(request)
    assert isinstance(last, Finished)
    return last


def check(engine: Engine, *, right: bool = False) -> None:
    """The target's own ids, greedy and drawn; `right`: the draft model is right where nothing is drawn, but where a
    random target emits a row of its embedding that no token has: such ids are never drafted."""
    asked = drafted = accepted = 0
    for case in random_edits(3, seed=4):
        found = done(engine, case.request)
        assert found.token_ids == done(engine, replace(case.request, draft=False)).token_ids
        stats = found.stats.draft_model
        assert stats is not None and "given up" not in stats.decision and stats.weights_bytes > 0
        asked += stats.passes
        if case.request.temperature == 0:
            hits = found.stats.by_drafter.get(DRAFT_MODEL, (0, 0))
            drafted, accepted = drafted + hits[0], accepted + hits[1]
    assert asked > 0
    if right:
        assert drafted > 10 and accepted > 0.6 * drafted


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_a_draft_model_changes_no_token_of_any_family(folder_of: Callable[..., Path], family: str) -> None:
    names = list(ARCHITECTURES)
    check(always(folder_of(family), folder_of(names[names.index(family) - 1])))


@pytest.mark.parametrize("family", ["Qwen2", "Mistral", "Gemma3"])
def test_every_kind_of_cache_can_draft(folder_of: Callable[..., Path], family: str) -> None:
    """Its cache is cut back at every draft: full, sliding and mixed ones."""
    check(always(folder_of(family), folder_of(family)), right=True)


def test_the_rejection_rule_runs_on_folders(folder_of: Callable[..., Path]) -> None:
    engine = always(folder_of("Qwen2"), folder_of("Llama"), "rejection")
    assert engine.info.guarantee == "not guaranteed"
    for case in random_edits(3, seed=5):
        drawn = replace(case.request, temperature=1.0)
        found = done(engine, drawn)
        assert found.stats.mean_logprob is not None and found.token_ids
        greedy = replace(case.request, temperature=0.0)
        assert done(engine, greedy).token_ids == done(engine, replace(greedy, draft=False)).token_ids


def test_a_file_and_a_folder_draft_for_each_other(tmp_path: Path) -> None:
    file = write_tiny(tmp_path / "tiny.gguf", "qwen2", seed=7)
    folder = tmp_path / "folder"
    export_folder(file, folder)
    check(always(file, folder))
    check(always(folder, file))
