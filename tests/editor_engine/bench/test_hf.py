"""The workload `hf`: runs in turns, ratios of one round, and ids compared with `==`."""

import pytest

from editor_engine.bench.hf import DRAFTED, LOOKUP, NATIVE, PLAIN, THEIRS, HfFigures, Reply, Way, compare, table
from editor_engine.bench.peer_process import PeerFailedError, PeerRequest
from editor_engine.errors import RequestError
from editor_engine.requests import Message

REQUESTS = [PeerRequest((Message("user", text),), 9) for text in ("one", "two")]


def way(calls: list[str], name: str, ids: tuple[int, ...], seconds: float, passes: int) -> Way:
    def answer(request: PeerRequest) -> Reply:
        calls.append(name)
        return Reply(ids, seconds, passes)

    return answer


def figures(calls: list[str], rounds: int = 2) -> HfFigures:
    ways = {
        PLAIN: way(calls, PLAIN, (1, 2, 3, 4, 5), 2.0, 4),
        DRAFTED: way(calls, DRAFTED, (1, 2, 3, 4, 5), 0.5, 1),
        THEIRS: way(calls, THEIRS, (1, 2, 3, 4, 5), 4.0, 4),
        LOOKUP: way(calls, LOOKUP, (1, 2, 9, 4, 5), 1.0, 2),
    }
    counts = iter([(100, 1), (140, 2)])
    return compare(ways, REQUESTS, rounds, lambda words: None, lambda: next(counts))


def test_ways_take_turns_and_ratios_are_of_one_round() -> None:
    calls: list[str] = []
    found = figures(calls)
    assert calls == [name for _ in range(2) for name in (PLAIN, DRAFTED, THEIRS, LOOKUP) for _ in REQUESTS]
    assert found.rates[PLAIN].runs == (2.0, 2.0)
    shown = found.ratios
    assert shown["drafted_vs_plain"] and shown["drafted_vs_plain"].median == 4.0
    assert shown["drafted_vs_prompt_lookup"] and shown["drafted_vs_prompt_lookup"].median == 2.0
    assert shown["plain_vs_transformers"] and shown["plain_vs_transformers"].median == 2.0
    assert shown["native_vs_drafted"] is None
    assert found.tokens_per_pass(DRAFTED) == 4.0
    assert found.rerun_share == 1 / 40


def test_ids_that_differ_are_placed() -> None:
    found = figures([])
    assert (found.same(DRAFTED), found.same(LOOKUP)) == (2, 0)
    fields = found.fields()["figures"]
    assert isinstance(fields, dict)
    assert fields[LOOKUP]["first_differences"] == [2, 2]
    assert fields[DRAFTED]["first_differences"] == [None, None]
    words = table(found)
    assert "same ids in 0 of 2 edits" in words and "2.500% of the positions" in words
    assert NATIVE not in words


def test_nothing_to_do_and_no_rate_are_said() -> None:
    with pytest.raises(RequestError, match="no edit"):
        compare({PLAIN: way([], PLAIN, (1,), 1.0, 0)}, [], 1, lambda words: None)
    with pytest.raises(PeerFailedError, match="redraft plain gave no rate"):
        compare({PLAIN: way([], PLAIN, (1,), 0.0, 0)}, REQUESTS, 1, lambda words: None)
