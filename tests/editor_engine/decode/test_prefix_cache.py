"""Copies of caches: conversations that take turns find theirs again, within the budget; the cache is never wrong."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.prefix_cache import WORTH, PrefixCache
from editor_engine.models.target import CacheSnapshot
from tests.support.fake_model import FakeModel, pseudo_random

SYSTEM = [1, 2, 3]
PLENTY = 1 << 20


def conversation(number: int, length: int = 3 * WORTH) -> list[int]:
    return [*SYSTEM, *(4 + (number + 7 * at) % 50 for at in range(length))]


class Engine:
    """What the engine does with a prompt: enter, fill, reply, leave."""

    def __init__(self, budget: int, available: int | None = None, context: int = 4096) -> None:
        self.model = FakeModel(pseudo_random(64), context=context)
        self.prefixes = PrefixCache(self.model, budget, lambda: available)

    def ask(self, prompt: list[int], reply: int = 5) -> int:
        cached = self.prefixes.enter(prompt)
        assert self.model.cache == prompt[:cached]
        assert cached < len(prompt)
        self.model.cache += [*prompt[cached:], *range(reply)]
        self.prefixes.leave(list(self.model.cache), len(prompt))
        return cached


def test_conversations_that_take_turns_are_not_prefilled_anew() -> None:
    engine = Engine(PLENTY)
    turns = [conversation(number) for number in range(3)]
    assert [engine.ask(prompt) for prompt in turns] == [0, len(SYSTEM), len(SYSTEM)]
    for _ in range(2):
        for at, prompt in enumerate(turns):
            turns[at] = [*prompt, *range(5), 60, 61]
            assert engine.ask(turns[at]) == len(prompt) + 5


def test_without_a_budget_only_the_last_one_is_known() -> None:
    engine = Engine(0)
    assert [engine.ask(conversation(number)) for number in (0, 1, 0)] == [0, len(SYSTEM), len(SYSTEM)]
    assert engine.prefixes.copied_bytes == 0


def test_another_try_at_the_same_prompt_is_no_other_conversation() -> None:
    engine = Engine(PLENTY)
    prompt = conversation(0)
    engine.ask([*prompt, 60])
    assert engine.ask([*prompt, 61]) == len(prompt)
    assert engine.prefixes.copied_bytes == 0


def test_the_least_recently_used_copy_goes_first() -> None:
    size = len(conversation(0)) + 5
    engine = Engine(2 * 4 * size)  # the fake model has 4 bytes a token
    for number in (0, 1, 2, 3):  # 3 is live, 2 and 1 are copies
        engine.ask(conversation(number))
    assert engine.prefixes.copied_bytes == 2 * 4 * size
    assert engine.ask(conversation(1)) == len(conversation(1)) - 1
    assert engine.ask(conversation(0)) == len(SYSTEM)


def test_a_conversation_larger_than_the_budget_is_copied_as_far_as_it_goes() -> None:
    engine = Engine(4 * 2 * WORTH)
    engine.ask(conversation(0))
    engine.ask(conversation(1))
    assert engine.ask(conversation(0)) == 2 * WORTH


@pytest.mark.parametrize(("available", "cached"), [(None, 3 * WORTH + 2), (8 * 2 * WORTH, 2 * WORTH), (0, len(SYSTEM))])
def test_copies_leave_the_machine_room(available: int | None, cached: int) -> None:
    engine = Engine(PLENTY, available)
    engine.ask(conversation(0))
    engine.ask(conversation(1))
    assert engine.ask(conversation(0)) == cached


def test_no_memory_means_no_copies_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(PLENTY)
    engine.ask(conversation(0))

    def export(length: int) -> CacheSnapshot:
        raise MemoryError

    monkeypatch.setattr(engine.model, "export_cache", export)
    assert engine.ask(conversation(1)) == len(SYSTEM)
    assert engine.prefixes.copied_bytes == 0


def test_a_copy_that_cannot_be_put_back_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(PLENTY)
    for number in (0, 1):
        engine.ask(conversation(number))
    before = list(engine.model.cache)

    def refuse(snapshot: CacheSnapshot) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine.model, "import_cache", refuse)
        with pytest.raises(MemoryError):
            engine.ask(conversation(0))
    assert engine.model.cache == before
    assert engine.ask(conversation(1)) == len(conversation(1)) - 1
    assert engine.ask(conversation(0)) == len(conversation(0)) - 1


def test_a_copy_that_made_room_does_not_come_back_over_the_budget() -> None:
    first, other = conversation(0, 300), conversation(1, 300)
    engine = Engine(4 * (len(first) + 5))  # room for one copy
    engine.ask(first)
    engine.ask(other)  # now `first` is the copy
    branch = [*first[: WORTH + 10], *(60 + at % 3 for at in range(200))]
    assert engine.ask(branch) == WORTH + 10  # read from the copy of `first`, which `other` took the place of
    assert engine.prefixes.copied_bytes <= 4 * (len(first) + 5)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4 * WORTH), st.integers(0, 40)), max_size=20),
    st.integers(0, 4 * 12 * WORTH),
)
def test_the_cache_is_always_a_beginning_of_the_prompt(asked: list[tuple[int, int, int]], budget: int) -> None:
    engine = Engine(budget)
    for (number, length, reply), salt in zip(asked, itertools.count(), strict=False):
        prompt = [*conversation(number, length), salt % 60]
        engine.ask(prompt, reply)
        assert engine.prefixes.copied_bytes <= budget
