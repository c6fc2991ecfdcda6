"""What is left of older turns waits, whatever is asked, decided, applied, taken back or changed on disk meanwhile."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pytest

from app.editing.diff import Hunk, join
from app.editing.resume import resumed_turns, saved_session
from app.editing.review import Item
from app.editing.turns import Turns, derived
from tests.support.sittings import BASE, NO, OPEN, YES, changed, decided, document, joined, proposal


def one_left_one_applied() -> Turns:
    """Turn 1 has an undecided hunk, turn 2 is decided in full and in the file."""
    turns = Turns(document()).begin("One.", None)
    turns = turns.proposed(proposal(turns.document, changed(BASE, 2, 20)))
    turns = decided(turns, NO, OPEN).begin("Two.", None)
    turns = decided(turns.proposed(proposal(turns.document, changed(BASE, 30, to="two"))), YES)
    newer = derived(turns.document, join(turns.document, turns.to_apply()))
    return turns.applied(newer).moved_to(newer)[0]


def test_an_older_turn_waits_while_a_newer_one_is_decided_and_applied() -> None:
    turns = one_left_one_applied()
    assert [turn.number for turn in turns.waiting] == [1]
    back, lost = turns.review_of(1)
    assert lost == 0 and back.current is not None and back.current.review is not None
    assert back.current.review.decisions == (NO, OPEN)
    back = decided(back, NO, YES)
    assert join(back.document, back.to_apply()) == joined(changed(changed(BASE, 20), 30, to="two"))
    assert back.thrown_away(1).waiting == ()


def test_an_older_turn_waits_when_a_newer_one_fails() -> None:
    turns = Turns(document()).begin("One.", None)
    turns = turns.proposed(proposal(turns.document, changed(BASE, 2))).begin("Two.", None).failed("It was cut.")
    assert [turn.number for turn in turns.waiting] == [1]
    again = resumed_turns(saved_session(turns))
    assert again.reviewed == 1 and again.turns[1].failure == "It was cut."
    assert turns.review_of(2)[0] is turns  # nothing to decide in it


def test_what_a_turn_is_based_on_is_written_with_it_and_only_the_rest_waits() -> None:
    turns = Turns(document()).begin("One.", None)
    turns = decided(turns.proposed(proposal(turns.document, changed(BASE, 2, 20))), YES, OPEN)
    turns = turns.on_accepted(None)[0].begin("Two.", None)
    assert turns.current is not None
    made = proposal(turns.current.base, changed(list(turns.current.base.lines), 30, to="two"))
    turns = decided(turns.proposed(made), YES)
    newer = derived(turns.document, join(turns.document, turns.to_apply()))
    after = turns.applied(newer).moved_to(newer)[0]
    (first,) = after.waiting
    assert first.number == 1 and [item.decision for item in first.left] == [OPEN]
    rejected = decided(turns, NO)
    (first,) = rejected.waiting  # what was accepted of it is in no file yet
    assert first.number == 1 and [item.decision for item in first.left] == [YES, OPEN]


def test_what_does_not_fit_waits_apart_and_fits_again_with_the_file() -> None:
    turns = Turns(document()).begin("One.", None)
    turns = turns.proposed(proposal(turns.document, changed(BASE, 2, 20))).begin("Two.", None).failed("It was cut.")
    newer = document(changed(BASE, 2, to="theirs"))
    moved, lost = turns.moved_to(newer)
    assert lost == 0 and moved.unfit(1) == 1  # the current one failed
    back, lost = moved.review_of(1)
    assert lost == 1 and [len(turn.left) for turn in back.waiting] == [1, 1]
    apart = back.waiting[-1]
    assert apart.number == 3 and apart.instruction == "One." and back.unfit(3) == 1
    assert back.review_of(3) == (back, 1)
    home, _ = back.moved_to(document())
    fits, lost = home.review_of(3)
    assert lost == 0 and fits.reviewed == 3
    with pytest.raises(IndexError):
        back.review_of(4)


def test_a_base_with_something_left_is_brought_to_the_file_as_it_is() -> None:
    turns = one_left_one_applied().switch_base(1)
    assert turns.document_of(1).data == turns.document.data and turns.reviewed == 2


# --- whatever happens -------------------------------------------------------------------------------------------------


class Sitting(NamedTuple):
    """What a user did so far, and what is owed to them."""

    turns: Turns
    owed: frozenset[str]
    """Added lines that were proposed, and neither rejected nor written."""
    applied: tuple[Turns, ...] = ()
    """The turns before each apply that can be taken back."""


def added(hunks: Iterable[Hunk]) -> frozenset[str]:
    return frozenset(line.text for hunk in hunks for change in hunk.changes for line in change.added)


def hunks_of(items: Iterable[Item]) -> list[Hunk]:
    return [item.hunk for item in items]


def stepped(now: Sitting, step: str, a: int, b: int, which: int) -> Sitting:
    """One thing more that a user may do; nothing where it cannot be done."""
    turns, owed, applied = now
    turn, count = turns.current, len(turns.turns)
    name = f"{step} {count} {a} {b} {len(applied)} {len(turns.document.lines)}"
    match step:
        case "ask" | "fail":
            turns = turns.on_accepted(None)[0].begin("Do.", None)
            assert turns.current is not None
            base = turns.current.base
            places = [at for at in (a, b) if at < len(base.lines) and base.lines[at].startswith("line")]
            if step == "fail" or not places:
                return now._replace(turns=turns.failed("It was cut."))
            turns = turns.proposed(proposal(base, changed(list(base.lines), *places, to=name)))
            assert turns.current is not None
            return now._replace(turns=turns, owed=owed | added(hunks_of(turns.current.left)))
        case "decide" if turn is not None and turn.review is not None and turn.review.items:
            index = which % len(turn.review.items) + 1
            item, decision = turn.review.item(index), (YES, YES, NO, OPEN)[which // 3 % 4]
            turns = turns.decided(turn.review.decide(index, decision))
            words = added([item.hunk])
            return now._replace(turns=turns, owed=owed - words if decision is NO else owed | words)
        case "review" if count:
            return now._replace(turns=turns.review_of(which % count + 1)[0])
        case "base" if turns.waiting:
            return now._replace(turns=turns.switch_base(turns.waiting[which % len(turns.waiting)].number))
        case "throw away" if turns.waiting:
            thrown = turns.waiting[which % len(turns.waiting)]
            return now._replace(turns=turns.thrown_away(thrown.number), owed=owed - added(hunks_of(thrown.left)))
        case "apply" if turn is not None and turns.to_apply():
            newer = derived(turns.document, join(turns.document, turns.to_apply()))
            ours = {line for line in turns.document.lines if not line.startswith("line")}
            assert ours <= set(newer.lines)  # nothing asked for a change of these
            moved = turns.applied(newer).moved_to(newer)[0]
            return Sitting(moved, owed - set(newer.lines), (*applied, turns))
        case "take back" if applied:
            then = applied[-1]
            back = then.unapplied(turns).reread(then.document)
            for written in (then.turns[number - 1] for number in then._written()):
                assert written.review is not None  # as it was: what was decided of it since is taken back as well
                owed = owed - added(written.review.hunks) | added(hunks_of(written.left))
            return Sitting(back, owed, applied[:-1])
        case "theirs":
            lines = list(turns.document.lines)
            lines[a : a + b % 2] = [name]
            return Sitting(turns.moved_to(derived(turns.document, joined(lines)))[0], owed)
        case "end":
            return Sitting(resumed_turns(saved_session(turns)), owed)
        case _:
            return now


STEPS = (
    *(["ask"] * 3 + ["decide"] * 6 + ["apply"] * 3 + ["review"] * 2),
    *("base", "fail", "throw away", "take back", "theirs", "end"),
)
PLACES = (5, 6, 14, 22, 23, 31)
"""Few, so that changes meet."""


def act_at_random(seed: int) -> None:
    chance = random.Random(seed)
    now = Sitting(Turns(document()), frozenset())
    for _ in range(30):
        step = chance.choice(STEPS)
        now = stepped(now, step, chance.choice(PLACES), chance.choice(PLACES), chance.randrange(12))
        waiting = added(hunks_of(item for turn in now.turns.waiting for item in turn.left))
        assert now.owed <= waiting, (seed, step)
        for at, turn in enumerate(now.turns.turns, 1):
            assert turn.number == at and turn.based_on < at
            assert turn.review is None or turn.review.document.data == turn.base.data


def test_no_hunk_is_lost_that_was_not_rejected_or_written() -> None:
    for seed in range(80):
        act_at_random(seed)


@pytest.mark.slow
def test_no_hunk_is_lost_in_thousands_of_sittings() -> None:
    for seed in range(1_000, 5_000):
        act_at_random(seed)


def test_a_later_turn_stays_when_an_apply_is_taken_back() -> None:
    before = Turns(document()).begin("One.", None)
    before = decided(before.proposed(proposal(before.document, changed(BASE, 2))), YES)
    newer = derived(before.document, join(before.document, before.to_apply()))
    after = before.applied(newer).moved_to(newer)[0].begin("Two.", None)
    after = after.proposed(proposal(newer, changed(list(newer.lines), 30, to="two")))
    back = replace(before.unapplied(after), document=before.document)
    assert [turn.number for turn in back.waiting] == [1, 2] and back.reviewed == 1
    assert back.review_of(2)[0].turns[1].base.data == joined(BASE)
