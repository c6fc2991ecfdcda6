"""Draws follow the model's distribution, are keyed by seed and position, and can be repeated."""

import numpy as np
import pytest

from editor_engine.errors import NumericsError
from editor_engine.models.sampling import (
    Sampling,
    choose,
    distribution,
    drawn,
    likeliest,
    log_likelihood,
    uniform,
)


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    scaled = np.exp((logits - logits.max()).astype(float) / temperature)
    return scaled / scaled.sum()


LOGITS = np.array([2.0, -1.0, 0.5, 0.5, -30.0, 1.0], np.float32)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("along", ["positions", "seeds"])
def test_draws_follow_the_softmax(temperature: float, along: str) -> None:
    count = 4_000
    counts = np.zeros(len(LOGITS))
    for index in range(count):
        seed, position = (7, index) if along == "positions" else (index, 7)
        counts[choose(LOGITS, Sampling(temperature, seed), position).token] += 1
    expected = softmax(LOGITS, temperature) * count
    likely = expected > 5
    chi_square = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    # 4 degrees of freedom: the draws are fixed by their keys, so this holds always or never; 18.5 is p = 0.001.
    assert chi_square < 18.5
    assert counts[~likely].sum() <= 5


def test_temperature_0_takes_the_greatest_and_the_lowest_of_ties() -> None:
    assert choose(np.array([1.0, 3.0, 3.0], np.float32), Sampling(0.0, 5), 9).token == 1


def test_the_log_likelihood_is_that_of_temperature_1() -> None:
    drawn = choose(LOGITS, Sampling(0.7, 3), 11)
    assert drawn.logprob == pytest.approx(float(np.log(softmax(LOGITS, 1.0)[drawn.token])), rel=1e-12)


def test_a_token_without_mass_is_never_drawn() -> None:
    logits = np.array([0.0, -1e30, 0.0, -1e30], np.float32)
    assert {choose(logits, Sampling(1.0, seed), 0).token for seed in range(300)} == {0, 2}


def test_a_draw_belongs_to_its_key() -> None:
    draws = {(seed, position): uniform(seed, position) for seed in range(5) for position in range(5)}
    assert len(set(draws.values())) == 25
    assert all(uniform(*key) == draw and 0 <= draw < 1 for key, draw in draws.items())
    assert uniform(1234, 5678) == 0.6025984725322118


def test_every_seed_of_64_bits_is_its_own() -> None:
    seeds = [-5, -1, *range(-(1 << 63), -(1 << 63) + 3), *range((1 << 63) - 3, 1 << 63)]
    assert len({uniform(seed, 3) for seed in seeds}) == len(seeds)
    assert uniform(-1, 3) == uniform((1 << 64) - 1, 3)


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-9])
def test_a_temperature_next_to_0_takes_the_greatest(temperature: float) -> None:
    logits = np.array([1.0, 3.0, 2.5, -1e30], dtype=np.float32)
    assert {choose(logits, Sampling(temperature, seed), 0).token for seed in range(20)} == {1}


def test_further_draws_of_a_key_are_others_and_can_be_repeated() -> None:
    draws = [uniform(7, 3, again) for again in range(200)]
    assert draws[0] == uniform(7, 3) and len(set(draws)) == 200
    assert draws == [uniform(7, 3, again) for again in range(200)]
    assert 0.4 < sum(draws) / 200 < 0.6


def test_the_likeliest_token_is_the_greedy_one_with_its_probability() -> None:
    token, confidence = likeliest(LOGITS)
    assert token == choose(LOGITS, Sampling(0.0, 0), 0).token
    assert confidence == pytest.approx(softmax(LOGITS, 1.0)[token], rel=1e-6)
    assert likeliest(np.array([1.0, 3.0, 3.0], np.float32))[0] == 1


@pytest.mark.parametrize("wrong", [[1.0, np.nan], [np.inf, 0.0], [np.inf, np.inf], [-np.inf, -np.inf]])
def test_logits_that_are_no_numbers_are_an_error(wrong: list[float]) -> None:
    with pytest.raises(NumericsError):
        likeliest(np.array(wrong, np.float32))
    with pytest.raises(NumericsError):
        distribution(np.array(wrong, np.float32), 1.0)


@pytest.mark.parametrize("temperature", [1e-310, 0.5, 1.0, 3.0])
def test_a_distribution_is_the_softmax(temperature: float) -> None:
    found = distribution(LOGITS, temperature)
    with np.errstate(over="ignore"):
        assert np.allclose(found, softmax(LOGITS, temperature), rtol=1e-12, atol=0)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_draw_is_inverted_along_the_ids_and_never_lands_on_nothing() -> None:
    mass = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    assert [drawn(mass, draw) for draw in (0.0, 0.2499, 0.25, 0.9999999999999999)] == [1, 1, 3, 3]


def test_the_log_likelihood_of_any_token_is_that_of_temperature_1() -> None:
    for token in range(len(LOGITS)):
        assert log_likelihood(LOGITS, token) == pytest.approx(np.log(softmax(LOGITS, 1.0)[token]), rel=1e-12)
