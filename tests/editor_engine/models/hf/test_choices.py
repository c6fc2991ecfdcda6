"""Greedy choices of a pass: first of equals, leads and magnitudes as an obvious twin finds them, logits untouched."""

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.models.hf.choices import greedy
from editor_engine.models.hf.guard import Guard

GUARD = Guard(share=0.25, replay=False)
ROWS = st.integers(2, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(-4, 4).map(float), min_size=width, max_size=width), min_size=1, max_size=4
    )
)


def obvious(row: list[float]) -> tuple[int, bool]:
    best = max(row)
    token = row.index(best)
    second = max(row[:token] + row[token + 1 :])
    return token, best - second <= GUARD.share * max(abs(value) for value in row)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(rows=ROWS)
def test_they_are_those_of_the_twin_and_the_logits_are_as_before(rows: list[list[float]]) -> None:
    with torch.inference_mode():
        logits = torch.tensor(rows)
    choices = greedy(GUARD)(logits, 0)
    assert [(choice.scored.token, choice.near) for choice in choices] == [obvious(row) for row in rows]
    assert logits.tolist() == rows
