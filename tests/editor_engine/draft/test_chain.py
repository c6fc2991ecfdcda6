"""The drafter as a whole: what it proposes, what it learns, and that it stays bounded and deterministic."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.verify import common_prefix
from editor_engine.draft.chain import ChainDrafter, Parts
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.events import Provenance
from tests.support.work import steps_of

INSTRUCTION = [5001, 5002, 5003]


class Run:
    """A whole reply, decoded against a scripted target."""

    def __init__(self, drafter: ChainDrafter, target: Sequence[int]) -> None:
        self.drafts: list[Draft] = []
        self.origins: list[Origin] = []
        self.accepted = 0
        done = 0
        while done < len(target):
            room = len(target) - done - 1
            draft = drafter.draft(room)
            assert len(draft.tokens) <= room
            accepted = 0
            while accepted < len(draft.tokens) and draft.tokens[accepted] == target[done + accepted]:
                accepted += 1
            emitted = target[done : done + accepted + 1]
            origins = drafter.observe(draft, accepted, emitted, None)
            assert len(origins) == len(emitted)
            self.drafts.append(draft)
            self.origins += origins
            self.accepted += accepted
            done += len(emitted)

    @property
    def passes(self) -> int:
        return len(self.drafts)


def chain(source: Sequence[int], cost: PassCost | None = None, parts: Parts | None = None) -> ChainDrafter:
    return ChainDrafter([*source, *INSTRUCTION], source, (0,), cost=cost, parts=parts)


def file_of(lines: int) -> list[int]:
    """Lines of ten tokens with common beginnings and endings, so that nothing but position tells them apart."""
    return [token for line in range(lines) for token in (1, 2, 3, 100 + line, 4, 5, 1000 + 7 * line % 50, 6, 7, 8)]


def test_an_unchanged_file_takes_a_pass_for_each_full_draft() -> None:
    source = file_of(64)
    run = Run(chain(source, PassCost.flat()), source)
    assert run.passes == 10
    assert {origin.provenance for origin in run.origins[:63]} == {Provenance.COPIED}
    assert [origin.source_index for origin in run.origins] == list(range(640))
    assert run.drafts[1].source_index == 64 and run.drafts[1].drafter == "cursor"


def test_under_dear_rows_drafts_fill_the_tile() -> None:
    source = file_of(40)
    run = Run(chain(source, PassCost.avx2()), source)
    assert [len(draft.tokens) for draft in run.drafts[:-1]] == [3] * (run.passes - 1)
    assert run.passes == 100


def edited(source: list[int], edit: Callable[[list[int]], None]) -> list[int]:
    target = list(source)
    edit(target)
    return target


def replace_one(target: list[int]) -> None:
    target[200] = 9000


def insert_line(target: list[int]) -> None:
    target[200:200] = range(9000, 9010)


def delete_lines(target: list[int]) -> None:
    del target[200:220]


def move_lines(target: list[int]) -> None:
    target[400:400] = target[100:150]
    del target[100:150]


@pytest.mark.parametrize(
    ("edit", "most"),
    [(replace_one, 9), (insert_line, 20), (delete_lines, 12), (move_lines, 20)],
)
def test_an_edit_costs_its_own_tokens_and_little_more(edit: Callable[[list[int]], None], most: int) -> None:
    source = file_of(50)
    run = Run(chain(source, PassCost.flat()), edited(source, edit))
    assert run.passes <= 8 + most


def test_a_rename_is_learned() -> None:
    source = [token for line in range(60) for token in (100 + line, 200 + 3 * line % 60, 7, 8, 9)]
    target = [new for token in source for new in ([70, 71] if token == 7 else [token])]
    run = Run(chain(source, PassCost.flat()), target)
    assert run.passes < 16
    assert sum(origin.provenance is Provenance.SUBSTITUTED for origin in run.origins) > 100
    without = Run(chain(source, PassCost.flat(), Parts(substitutions=False)), target)
    assert without.passes > 3 * run.passes


def test_a_model_token_equal_to_the_source_is_agreed() -> None:
    source = file_of(5)
    drafter = chain(source)
    assert drafter.observe(Draft(), 0, source[:1], None) == [Origin(Provenance.AGREED, 0)]
    assert drafter.observe(Draft(), 0, [9999], None) == [Origin(Provenance.GENERATED, None)]


def test_a_stop_token_is_never_drafted() -> None:
    source = [*file_of(3), 0, 1, 2, 3]
    run = Run(chain(source, PassCost.flat()), file_of(3))
    assert all(0 not in draft.tokens for draft in run.drafts)


def test_no_room_and_no_evidence_bring_no_draft() -> None:
    assert chain(file_of(5)).draft(0) == Draft()
    assert ChainDrafter([], []).draft(9) == Draft()
    assert ChainDrafter([1, 2, 3], []).draft(9) == Draft()


def test_a_bad_start_is_held_back() -> None:
    """Text that has nothing to do with the file costs hardly more than plain decoding."""
    target = [(i * 7919 + i * i) % 499 for i in range(1000)]
    drafter, costs = chain(file_of(50), PassCost.avx2()), PassCost.avx2().costs(0)
    run = Run(drafter, target)
    assert sum(costs[1 + len(draft.tokens)] for draft in run.drafts) / len(target) <= 1.01


@pytest.mark.parametrize("isa", ["avx2", "scalar"])
@pytest.mark.parametrize("quoted", [3, 5, 9])
def test_free_text_never_costs_more_than_its_allowance(isa: str, quoted: int) -> None:
    """Text that quotes its prompt and breaks off, so that drafts fail when nothing was won yet."""
    prompt = list(range(3000, 3200))
    target = [token for at in range(0, 180, 12) for token in (*prompt[at : at + quoted], 100 + at, 300 + at, 500 + at)]
    costs, cost, emitted = PassCost.shipped(isa).costs(0), 0.0, 0
    drafter = ChainDrafter(prompt, [], (0,), cost=PassCost.shipped(isa))
    while emitted < len(target):
        draft = drafter.draft(len(target) - emitted - 1)
        accepted = common_prefix(draft.tokens, target[emitted:])
        drafter.observe(draft, accepted, target[emitted : emitted + accepted + 1], None)
        emitted += accepted + 1
        cost += costs[1 + len(draft.tokens)]
        assert cost <= 1.005 * emitted + 0.5 + 1e-9


def test_measured_passes_change_the_length() -> None:
    source = file_of(200)
    cost = PassCost.avx2()
    drafter = chain(source, cost)
    done, lengths = 0, []
    while done < len(source) - 64:
        draft = drafter.draft(63)
        emitted = source[done : done + len(draft.tokens) + 1]
        seconds = 0.08 * (1 + len(draft.tokens))  # here a row more costs more than a plain step
        drafter.observe(draft, len(draft.tokens), emitted, seconds)
        cost.observe(1, len(source) + done, 0.04)
        done += len(emitted)
        lengths.append(len(draft.tokens))
    assert lengths[:3] == [3, 3, 3] and lengths[-9:] == [0] * 9


def test_the_prompt_copy_of_the_source_is_not_searched_twice() -> None:
    source = file_of(100)
    alone = ChainDrafter(source, source)
    inside = ChainDrafter([9001, 9002, *source, *INSTRUCTION], source)
    merged = ChainDrafter([9001, 9002, *source[1:-1], 9003], source)  # its ends merged with their neighbours
    sizes = [len(drafter._memory.tokens) for drafter in (alone, inside, merged)]
    assert max(sizes) < 1.1 * len(source)
    assert len(ChainDrafter(list(range(3000, 4000)), source)._memory.tokens) > 2 * len(source) - 10


TOKENS = st.integers(0, 6)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.lists(TOKENS, max_size=60),
    st.lists(TOKENS, max_size=20),
    st.lists(TOKENS, min_size=1, max_size=80),
    st.sampled_from([PassCost.flat, PassCost.avx2]),
)
def test_any_reply_over_any_file(
    source: list[int], prompt: list[int], target: list[int], cost: Callable[[], PassCost]
) -> None:
    """Small alphabets make every kind of false match; origins must still name tokens that are equal."""
    first, second = (Run(ChainDrafter(prompt, source, (0,), cost=cost()), target) for _ in range(2))
    assert first.drafts == second.drafts and first.origins == second.origins
    for token, origin in zip(target, first.origins, strict=True):
        if origin.source_index is not None:
            assert source[origin.source_index] == token


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 12), min_size=80, max_size=80), st.integers(20, 50))
def test_a_copy_names_its_place_where_the_cursor_had_lost_its_own_too(source: list[int], start: int) -> None:
    target = [*source[:5], 9001, 9002, *source[start : start + 30]]
    run = Run(chain(source, PassCost.flat()), target)
    for token, origin in zip(target, run.origins, strict=True):
        if origin.provenance is Provenance.COPIED:
            assert origin.source_index is not None and source[origin.source_index] == token


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_a_caller_may_cut_drafts_and_end_early(data: st.DataObject) -> None:
    source = file_of(6)
    drafter = chain(source, PassCost.flat())
    for _ in range(12):
        draft = drafter.draft(data.draw(st.integers(0, 70)))
        kept = data.draw(st.integers(0, len(draft.tokens)))
        cut = Draft(draft.tokens[:kept], draft.drafter, draft.source_index) if kept else Draft()
        accepted = data.draw(st.integers(0, kept))
        emitted = [*draft.tokens[:accepted], data.draw(st.sampled_from([*source, 9000]))]
        emitted = emitted[: data.draw(st.integers(max(1, accepted), accepted + 1))]
        assert len(drafter.observe(cut, accepted, emitted, None)) == len(emitted)


ADVERSARIAL = {
    "one line repeated": [1, 2, 3, 4, 5] * 2000,
    "one token": [7] * 10000,
    "minified": [1 + (i * i * 31 + i * 7) % 97 for i in range(10000)],
    "tabs and words": [token for i in range(2500) for token in (9, 9, 9, 100 + i % 40)],
    "bytes of wide characters": [token for i in range(2500) for token in (228, 184, 128 + i % 64, 239)],
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_work_and_memory_per_token_do_not_grow(name: str) -> None:
    """A late pass off the file does no more work than an early one, and everything kept is linear in the tokens."""
    source = ADVERSARIAL[name]
    drafter = chain(source, PassCost.flat())
    for token in source[:600]:
        drafter.draft(0)
        drafter.observe(Draft(), 0, [token], None)

    def off_the_file() -> None:
        for token in (*source[3:8], 9999, *source[5:9]):
            draft = drafter.draft(63)
            drafter.observe(draft, 0, [token], None)

    early = max(steps_of(off_the_file) for _ in range(3))
    for token in source[600:4000]:
        drafter.observe(Draft(), 0, [token], None)
    late = steps_of(off_the_file)
    assert late <= 2 * early + 2000
    assert late / 10 < 12_000
    memory = drafter._memory
    kept = sum(len(places) for places in memory.index._places.values()) + len(memory.successors._followers)
    assert kept <= 6 * len(memory.tokens)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_files_are_copied_at_full_length(name: str) -> None:
    source = ADVERSARIAL[name]
    run = Run(chain(source, PassCost.flat()), source)
    assert run.passes == -(-len(source) // 64)
    target = [*source[:3000], 9999, *source[3000:]]
    assert Run(chain(source, PassCost.flat()), target).passes <= run.passes + 12


def test_each_part_brings_something() -> None:
    """The ablation's switches do what they say, on a file with a rename, a repeated edit and a deletion."""
    source = [token for i in range(80) for token in (10 + i % 9, 20 + i % 7, 30, 31, 400 + i, 5)]
    target: list[int] = []
    for i, token in enumerate(source):
        target += [91, 92] if token == 30 else [] if 200 <= i < 230 else [token]
    passes = [
        Run(chain(source, PassCost.flat(), parts), target).passes
        for parts in (
            Parts(resync=False, substitutions=False, ngrams=False, fixed_length=15),
            Parts(substitutions=False, ngrams=False, fixed_length=15),
            Parts(ngrams=False, fixed_length=15),
            Parts(),
        )
    ]
    assert passes[0] > passes[1] > passes[2] > passes[3]
