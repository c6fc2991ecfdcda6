"""How clearly a token was chosen, against noise itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.models.hf.clearance import clearance
from editor_engine.models.sampling import Sampling, choose


@settings(derandomize=True, deadline=None, max_examples=200)
@given(seed=st.integers(0, 10_000), temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]), size=st.integers(2, 40))
def test_noise_below_it_changes_no_choice(seed: int, temperature: float, size: int) -> None:
    chance = np.random.default_rng(seed)
    logits = (chance.standard_normal(size) * 3).astype(np.float32)
    sampling = Sampling(temperature, seed)
    clear = clearance(logits, sampling, 5)
    chosen = choose(logits, sampling, 5).token
    # Each logit moves by up to half of it, so two move towards each other by up to all of it; beyond a tenth of a nat
    # the first order is not enough for drawn tokens.
    most = 0.45 * min(clear, 0.1 if temperature else clear)
    for _ in range(20):
        noise = chance.uniform(-most, most, size).astype(np.float32)
        assert choose(logits + noise, sampling, 5).token == chosen


@pytest.mark.parametrize(("logits", "lead"), [([1.0, 3.0, 2.5], 0.5), ([2.0, 2.0], 0.0), ([-1.0, -4.0], 3.0)])
def test_greedy_it_is_the_lead(logits: list[float], lead: float) -> None:
    assert clearance(np.array(logits, np.float32), Sampling(0.0, 0), 0) == lead


def test_a_token_with_all_the_mass_is_clear() -> None:
    assert clearance(np.array([0.0, 4000.0], np.float32), Sampling(1.0, 3), 0) > 1e6
