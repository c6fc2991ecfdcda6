"""The replay counts what a loop over a model that writes the target would have counted."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from editor_engine.bench.replay import (
    ReplayTask,
    TokenTask,
    load_tasks,
    replay,
    replay_task,
    result_fields,
    table,
    tokenise,
)
from editor_engine.bench.replay_peers import CURVES, DRAFTERS, PEER_RULES, PeerDrafter, PeerRule
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.errors import RequestError
from editor_engine.events import Provenance


class CharacterWords:
    """One token a character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def token_bytes(self, token_id: int) -> bytes:
        return chr(token_id).encode()


class Scripted:
    """Proposes given drafts in turn, then nothing; keeps what it is told."""

    def __init__(self, drafts: Sequence[Sequence[int]]) -> None:
        self.drafts = list(drafts)
        self.rooms: list[int] = []
        self.observed: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []

    def draft(self, room: int) -> Draft:
        self.rooms.append(room)
        return Draft(tuple(self.drafts.pop(0)), "scripted") if self.drafts else Draft()

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        assert pass_s is None
        self.observed.append((draft.tokens, accepted, tuple(emitted)))
        return [Origin(Provenance.GENERATED, None) for _ in emitted]


def letters(text: str) -> tuple[int, ...]:
    return tuple(CharacterWords().encode(text))


def task(target: str, source: str = "", instruction: str = "") -> TokenTask:
    return TokenTask("t", letters(source + instruction), letters(source), letters(target))


def test_every_token_is_emitted_and_drafts_are_cut_at_the_target() -> None:
    drafter = Scripted([letters("abcXYZ"), letters("efghijklm")])
    figures = replay_task(task("abcdefg"), drafter, PassCost.flat())
    # Pass 1 wins abc and d; pass 2 has room for two drafts, wins ef and g.
    assert drafter.rooms == [6, 2]
    assert drafter.observed == [(letters("abcXYZ"), 3, letters("abcd")), (letters("ef"), 2, letters("efg"))]
    assert (figures.tokens, figures.passes, figures.drafted, figures.accepted, figures.cost) == (7, 2, 8, 5, 2.0)


def test_cost_is_that_of_one_row_more_than_drafted() -> None:
    figures = replay_task(task("abcdefgh"), Scripted([letters("abc"), letters("a")]), PassCost.avx2())
    assert figures.passes == 5
    assert math.isclose(figures.cost, 2.33 + 1.58 + 3 * 1.0)
    assert figures.cost_per_token == figures.cost / 8


def test_hostile_drafts_change_counts_only() -> None:
    drafter = Scripted([[-5, 10**9], [], letters("b") * 1000])
    figures = replay_task(task("abcd"), drafter, PassCost.flat())
    assert b"".join(bytes(emitted) for _, _, emitted in drafter.observed) == b"abcd"
    assert figures.accepted <= figures.drafted < 1000


def test_means_are_geometric_and_worst_is_named() -> None:
    tasks = [
        TokenTask("short", (), (), letters("ab")),
        TokenTask("long", (), (), letters("abcdefgh")),
    ]
    figures = replay(
        tasks,
        {"truth": lambda one, cost: Scripted([one.target] * 9) if one.id == "long" else Scripted([])},
        {"flat": PassCost.flat, "avx2": PassCost.avx2},
    )
    flat, avx2 = figures["truth"]["flat"], figures["truth"]["avx2"]
    assert flat.tokens_per_pass_geomean == pytest.approx(math.sqrt(1.0 * 8.0))
    assert flat.tokens_per_pass_total == 10 / 3
    assert (avx2.worst.task, avx2.worst.cost_per_token) == ("short", 1.0)
    assert result_fields(figures) == {
        "drafters": {
            "truth": {
                "flat": {"geomean": flat.tokens_per_pass_geomean, "total": 10 / 3},
                "avx2": {"geomean": avx2.cost_per_token_geomean, "worst": 1.0, "worst_task": "short"},
            }
        }
    }
    assert "truth" in table(figures)
    assert json.loads(json.dumps(result_fields(figures))) == result_fields(figures)


def test_twice_the_same_to_the_last_digit() -> None:
    source = "".join(f"line {i}: value = compute({i % 7}, {i * 31 % 11})\n" for i in range(60))
    target = source.replace("compute", "derive").replace("line 30:", "line thirty, inserted:\nline 30:")
    tasks = tokenise([ReplayTask("rename", source, "Rename compute to derive", target)], CharacterWords())
    first, second = (replay(tasks, DRAFTERS, CURVES) for _ in range(2))
    assert first == second
    assert first["redraft"]["flat"].tokens_per_pass_total > first["vllm"]["flat"].tokens_per_pass_total


def test_no_task_is_refused() -> None:
    with pytest.raises(RequestError, match="at least one task"):
        replay([], DRAFTERS, CURVES)


def obvious_peer(rule: PeerRule, tokens: Sequence[int], room: int) -> tuple[int, ...]:
    """The slow twin: search the whole text for the last n tokens."""
    for size in rule.sizes:
        places = [end for end in range(size, len(tokens)) if list(tokens[end - size : end]) == list(tokens[-size:])]
        if places:
            place = places[-1] if rule.latest else places[0]
            return tuple(tokens[place : place + min(rule.length, room)])
    return ()


@pytest.mark.parametrize("name", PEER_RULES)
def test_peers_look_up_as_their_rule_says(name: str) -> None:
    rule = PEER_RULES[name]
    text = letters("the cat sat on the mat and the cat sat on the hat and the cat sat on the mat again, " * 2)
    drafter = PeerDrafter(rule, text[:60])
    for i in range(60, len(text)):
        for room in (0, 3, 99):
            assert drafter.draft(room).tokens == obvious_peer(rule, text[:i], room)
        drafter.observe(Draft(), 0, [text[i]], None)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_tasks_without_a_result_are_skipped(tmp_path: Path) -> None:
    full = {"id": "a", "before": "x", "instruction": "y", "after": "z", "language": "python"}
    path = write(tmp_path, json.dumps(full), "", json.dumps({"id": "b", "before": "x", "after": None}))
    assert load_tasks(path) == [ReplayTask("a", "x", "y", "z")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Line 1 .* is damaged"),
        ("[1]", "Line 1 .* no JSON object"),
        ('{"id": "a", "after": "z", "before": 3, "instruction": ""}', "Line 1 .* as text"),
        ('{"id": "a"}', "no task"),
        ("", "no task"),
    ],
)
def test_a_broken_tasks_file_is_named(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        load_tasks(write(tmp_path, line))


def test_a_missing_tasks_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"Cannot read the tasks .*nothing\.jsonl"):
        load_tasks(tmp_path / "nothing.jsonl")
