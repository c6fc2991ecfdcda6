"""Free text has nothing to copy: drafting may cost 1 % more than plain decoding, on chat and creative prompts.

The prompts are third-party data beside the checkout; without them these tests skip.
"""

import json
import os
from functools import partial
from pathlib import Path

import pytest

from editor_engine.config import EngineConfig
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.pass_cost import PassCost
from editor_engine.engine import Engine
from editor_engine.events import Finished, Pass
from editor_engine.requests import CompletionRequest, Message

_TASKS = Path(os.environ.get("REDRAFT_EDIT_TASKS") or Path(__file__).parents[3] / "shared" / "edit_tasks")
MOST_COST = 1.01
"""Sum of pass costs by the stored table, over emitted tokens."""


class Table(PassCost):
    """The stored table alone: real passes teach it nothing, so the drafts are the same on every machine."""

    def observe(self, rows: int, context: int, seconds: float) -> None:
        pass


def prompts() -> list[tuple[str, str]]:
    path = _TASKS / "spec_tasks.jsonl"
    if not path.is_file():
        pytest.skip("the chat and creative prompts are not beside this checkout")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [(row["id"], row["prompt"]) for row in rows if row["category"] in {"chat_zh", "creative"}]


def check_free_text(model: Path, every: int, max_tokens: int) -> None:
    engine = Engine.load(EngineConfig(model))
    for isa in ("avx2", "avx512vnni"):
        table = Table.shipped(isa)
        engine.drafting.make = partial(ChainDrafter, cost=table)
        for name, prompt in prompts()[::every]:
            events = list(engine.complete(CompletionRequest((Message("user", prompt),), max_tokens)))
            passes = [event for event in events if isinstance(event, Pass)]
            end = events[-1]
            assert isinstance(end, Finished)
            emitted = sum(event.emitted for event in passes)
            cost = sum(table.costs(end.stats.prompt_tokens)[event.rows] for event in passes) / emitted
            print(f"{isa} {name}: {emitted} tokens, {end.stats.drafted} drafted, {cost:.4f} plain steps a token")
            assert cost <= MOST_COST, name


@pytest.mark.model
def test_free_text_costs_no_more_than_plain_decoding(smollm2_path: Path) -> None:
    check_free_text(smollm2_path, 4, 100)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # thirty-two replies of 0.5B, on few and busy processors
@pytest.mark.model
def test_free_text_of_every_prompt(qwen05_path: Path) -> None:
    check_free_text(qwen05_path, 1, 200)
