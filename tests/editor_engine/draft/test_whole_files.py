"""Whole files of every awkward kind through drafter, loop and replay: bounded work and memory, and the plain output.

Texts, not made-up tokens: a 2,000-line file, one line repeated, a minified line, tabs, wide characters and emoji, each
with edits in it. Work is counted in Python steps and memory in bytes allocated, never in seconds.
"""

import itertools
import tracemalloc
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import mean

import pytest

from editor_engine.bench.filler import functions
from editor_engine.bench.replay import TokenTask, replay_task
from editor_engine.decode.plain import plain
from editor_engine.decode.speculate import speculate
from editor_engine.decode.verify import common_prefix
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Draft
from editor_engine.draft.pass_cost import PassCost
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer
from tests.support.fake_model import FakeModel, script
from tests.support.sinks import CountingSink
from tests.support.tiny_gguf import write_tiny
from tests.support.work import steps_of

STEPS_PER_PASS = 6_500
"""Python steps of one draft and its observation, at most, on average (4,900 were seen)."""
BYTES_PER_TOKEN = 400
"""What the drafter keeps for each token of prompt, source and output, at most."""

CODE = "".join(islice(functions(), 200))
FILES = {
    "2,000 lines": CODE,
    "one line repeated": "    total = total + 1\n" * 400,
    "minified": CODE[:8_000].replace("    ", "").replace("\n", ";"),
    "tabs": "".join("\t" * (n % 9) + f"x{n % 7}\n" + "\t\t\t\n" * (n % 3) for n in range(400)),
    "wide characters": "".join(f"价格_{n % 11} = 数量 * 单价 + {n}  # 第{n}行的合计\n" for n in range(150)),
    "emoji": "".join(f"print('👩‍👩‍👧 {n} 🇩🇪✈️👍🏽' * {n % 5})\n" for n in range(120)),
}


@cache
def tokenizer(folder: Path) -> Tokenizer:
    return load_tokenizer(GgufFile(write_tiny(folder / "tiny.gguf")).metadata, folder)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return tokenizer(tmp_path_factory.mktemp("tiny"))


def edited(text: str) -> str:
    """An insertion, a deletion, a replacement, and a name that changes twice in the last third."""
    length = len(text)
    parts = [text[length * part // 6 : length * (part + 1) // 6] for part in range(6)]
    parts[1] = "# one line more\n" + parts[1]
    parts[2] = parts[2][: len(parts[2]) // 2]
    parts[3] = "x" + parts[3][1:]
    parts[4] = parts[4].replace("value", "number", 2)
    return "".join(parts)


def task_of(name: str, words: Tokenizer) -> TokenTask:
    source = tuple(words.encode(FILES[name]))
    prompt = (*source, *words.encode("Change a few places."))
    return TokenTask(name, prompt, source, tuple(words.encode(edited(FILES[name]))), words)


def drafter_of(task: TokenTask, cost: PassCost) -> ChainDrafter:
    return ChainDrafter(task.prompt, task.source, (), cost=cost, words=task.words)


def model_of(task: TokenTask) -> FakeModel:
    vocabulary = 1 + max(*task.prompt, *task.target)
    model = FakeModel(script(1, task.target), vocab_size=vocabulary, rows=64, context=10**6)
    model.forward([0], head_rows=0)  # what the prompt was is of no interest to this model
    return model


@pytest.mark.parametrize("name", FILES)
def test_the_output_is_that_of_plain_decoding(name: str, words: Tokenizer) -> None:
    task = task_of(name, words)
    first, clock = task.target[0], itertools.count().__next__
    outputs = []
    for drafter in (drafter_of(task, PassCost.flat()), None):
        model, sink = model_of(task), CountingSink(len(task.target))
        sink.push(first)

        def choose(tokens: Sequence[int], head_rows: int, model: FakeModel = model) -> list[int]:
            return model.forward(tokens, head_rows=head_rows)

        if drafter is None:
            list(plain(choose, first, sink, clock))
        else:
            drafter.observe(Draft(), 0, [first], None)
            list(speculate(model, choose, first, drafter, sink, (), clock))
            assert len(model.passes) < len(task.target) / 8
        outputs.append(sink.ids)
    assert outputs[0] == outputs[1] == list(task.target)


@pytest.mark.parametrize("name", FILES)
def test_a_replay_stays_cheap_and_gives_the_same_figures_twice(name: str, words: Tokenizer) -> None:
    task = task_of(name, words)
    flat = [replay_task(task, drafter_of(task, cost), cost) for cost in (PassCost.flat(), PassCost.flat())]
    assert flat[0] == flat[1]
    assert flat[0].tokens_per_pass > 8
    dear = PassCost.avx2()
    assert replay_task(task, drafter_of(task, dear), dear).cost_per_token < 0.7


@pytest.mark.parametrize("name", FILES)
def test_work_and_memory_of_a_whole_reply_are_bounded(name: str, words: Tokenizer) -> None:
    """Every 20th pass is counted: late ones do no more than early ones, and what is kept grows with the tokens only."""
    task = task_of(name, words)
    tracemalloc.start()
    try:
        drafter = drafter_of(task, PassCost.shipped("avx2"))
        steps: list[int] = []
        target, done = task.target, 0
        for number in itertools.count():
            if done >= len(target):
                break
            at = done

            def one_pass(at: int = at) -> None:
                nonlocal done
                draft = drafter.draft(len(target) - at - 1)
                accepted = common_prefix(draft.tokens, target[at:])
                emitted = target[at : at + accepted + 1]
                drafter.observe(draft, accepted, emitted, None)
                done += len(emitted)

            if number % 20 == 10:
                steps.append(steps_of(one_pass))
            else:
                one_pass()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    quarter = max(1, len(steps) // 4)
    assert mean(steps) < STEPS_PER_PASS
    assert mean(steps[-quarter:]) < 2 * mean(steps[:quarter]) + 1000
    assert kept < BYTES_PER_TOKEN * (len(task.prompt) + len(target))
