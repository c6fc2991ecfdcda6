"""Chances start from the prior and follow what comes true."""

import pytest

from editor_engine.draft.acceptance import Acceptance


def test_prior_then_evidence() -> None:
    acceptance = Acceptance({"a": 0.9}, default=0.2, weight=4.0, window=20.0)
    assert acceptance.chance("a") == pytest.approx(0.9)
    assert acceptance.chance("b") == pytest.approx(0.2)
    acceptance.learn("b", True)
    assert acceptance.chance("b") == pytest.approx((1 + 4 * 0.2) / 5)
    assert acceptance.chance("a") == pytest.approx(0.9)


def test_old_evidence_fades() -> None:
    acceptance = Acceptance({}, default=0.5, weight=1.0, window=10.0)
    for _ in range(500):
        acceptance.learn("a", True)
    high = acceptance.chance("a")
    for _ in range(20):
        acceptance.learn("a", False)
    assert high > 0.9
    assert acceptance.chance("a") < 0.25
