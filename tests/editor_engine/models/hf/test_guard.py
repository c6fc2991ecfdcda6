"""The margin guard's policy against a slow twin, and its bookkeeping of passes against a replay of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.models.hf.forms import Forms, Span
from editor_engine.models.hf.guard import NOISE_SHARES, Guard, decided, next_near_tie

ids = st.integers(0, 2)


def reachable(following: Sequence[int], choices: Sequence[int]) -> list[int]:
    """Rows whose choice a loop looks at: it goes on only while what was chosen is what the pass had."""
    found = []
    for index in range(len(choices)):
        found.append(index)
        if index == len(following) or choices[index] != following[index]:
            break
    return found


@settings(derandomize=True, deadline=None)
@given(rows=st.lists(st.tuples(ids, ids, st.booleans()), max_size=8), start=st.integers(0, 8))
def test_only_near_ties_that_can_be_taken_are_found(rows: list[tuple[int, int, bool]], start: int) -> None:
    following, choices, near = [row[0] for row in rows][1:], [row[1] for row in rows], [row[2] for row in rows]
    taken = reachable(following, choices)
    assert decided(following, choices) == len(taken)
    if start == 0 or start in taken:  # the caller has settled what is before
        expected = next((index for index in taken if index >= start and near[index]), None)
        assert next_near_tie(following, choices, near, start) == expected


def test_a_tie_is_near_by_its_share_of_the_row() -> None:
    guard = Guard(0.01, replay=False)
    assert guard.near(0.1, 10.0)
    assert not guard.near(0.11, 10.0)
    assert Guard(0.0, replay=False).near(0.0, 10.0)


def test_fine_types_are_replayed_and_coarse_ones_have_more_noise() -> None:
    assert Guard.of("float32").replay
    assert not Guard.of("bfloat16").replay
    shares = list(NOISE_SHARES.values())
    assert list(NOISE_SHARES) == ["float32", "float16", "bfloat16", "int8"] and shares == sorted(shares)


WIDTH = 4
steps = st.one_of(
    st.tuples(st.just("read"), st.integers(1, WIDTH)),
    st.tuples(st.just("end"), st.integers(1, WIDTH)),
    st.tuples(st.just("verify"), st.integers(2, WIDTH)),
    st.tuples(st.just("step"), st.just(1)),
    st.tuples(st.just("cut"), st.integers(0, 12)),
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(taken=st.lists(steps, max_size=12))
def test_what_counts_as_plain_is_what_a_fresh_decode_would_have_computed(taken: list[tuple[str, int]]) -> None:
    """The twin gives every token a history: a hash of its pass and of all histories before it."""
    forms, twin = Forms(WIDTH), list[int]()
    for kind, number in taken:
        if kind == "cut":
            forms.truncate(min(number, len(twin)))
            del twin[min(number, len(twin)) :]
            continue
        head = {"read": 0, "verify": number}.get(kind, 1)
        forms.append(number, head)
        twin += [hash((kind == "verify", number, tuple(twin)))] * number
    plain = forms.plain_length()
    assert len(forms) == len(twin) and 0 <= plain <= len(twin)
    assert fresh(len(twin), forms.prompt)[:plain] == twin[:plain]
    spans = forms.plain_spans(plain, len(twin))
    assert [span.start for span in spans] == [plain, *(span.end for span in spans)][: len(spans)]
    assert not spans or spans[-1].end >= len(twin)


def fresh(length: int, prompt: int) -> list[int]:
    twin: list[int] = []
    while len(twin) < length:
        rows = min(WIDTH, prompt - len(twin)) if len(twin) < prompt else 1
        twin += [hash((False, rows, tuple(twin)))] * rows
    return twin


def test_the_last_token_of_a_prompt_is_read_in_its_pass_also_when_it_is_all_there_is_to_read() -> None:
    """The same prompt again: all but one token are in the cache, which a fresh decode would read with others."""
    forms = Forms(WIDTH)
    for rows, heads in ((4, 0), (2, 1), (1, 1)):
        forms.append(rows, heads)
    forms.truncate(5)
    forms.append(1, 1)
    forms.append(1, 1)
    assert (forms.prompt, forms.plain_length()) == (6, 4)
    assert forms.plain_spans(4, 7) == [Span(4, 6), Span(6, 7)]


def test_a_replay_makes_the_tokens_plain_and_those_behind_it_not() -> None:
    forms = Forms(WIDTH)
    for rows, heads in ((4, 0), (2, 1), (3, 3), (1, 1), (1, 1)):
        forms.append(rows, heads)
    assert (forms.prompt, forms.plain_length()) == (6, 6)
    forms.disown(6)
    spans = forms.plain_spans(6, 8)
    assert spans == [Span(6, 7), Span(7, 8)]
    for span in spans:
        forms.replayed(span)
    assert forms.plain_length() == 8
    assert forms.alone(7) and not forms.alone(9)
    again = Forms(WIDTH)
    again.load(forms.dump(), forms.prompt)
    assert again.plain_length() == 8


@pytest.mark.parametrize("rounding", NOISE_SHARES)
def test_an_exact_tie_is_always_near(rounding: str) -> None:
    assert Guard.of(rounding).near(0.0, 0.0)
