"""Noise keeps the mean, depends on the step alone, and scatters as calibration found."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models import CapturedGraphs, Constant, CostModelError, Noise, Regimes, StepShape, cost_model, read_profile
from cost_models.fits import Error, Errors
from cost_models.noise import WIDEST, centred, noise_for, spread_of
from cost_models.residuals import residuals

DECODE, PREFILL, MIXED = StepShape(4, 400), StepShape(0, 0, ((9, 0),)), StepShape(4, 400, ((9, 0),))
H100 = cost_model("regimes", model="llama-3.1-8b", gpu="h100-80")
ROUND = read_profile(Path(__file__).with_name("round.yaml"))
positive = st.floats(0.01, 100)


def factors(noise: Noise, count: int = 20_000, shape: StepShape = DECODE) -> np.ndarray:
    return np.array(noise.draw([10**12] * count, 0, shape)) / 1e12


@given(quantiles=st.lists(positive, min_size=2, max_size=40).map(sorted))
def test_the_mean_over_the_quantiles_is_one(quantiles: list[float]) -> None:
    found = centred(quantiles)
    middles = [(low + high) / 2 for low, high in pairwise(found)]
    assert sum(middles) / len(middles) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("how", ["profile", 0.05, 0.3, 1.0])
def test_steps_keep_their_mean(how: str | float) -> None:
    drawn = factors(noise_for(H100, how, seed=3))
    assert drawn.mean() == pytest.approx(1, abs=4 * drawn.std() / len(drawn) ** 0.5)


@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0])
def test_a_number_is_the_standard_deviation_of_what_is_drawn(spread: float) -> None:
    drawn = factors(noise_for(H100, spread, seed=3), 400_000)
    assert drawn.std() / drawn.mean() == pytest.approx(spread, rel=0.01)


def test_the_widest_noise_is_within_reach() -> None:
    knots = noise_for(H100, WIDEST, seed=3)._factors["decode"]
    assert spread_of(knots) == pytest.approx(WIDEST, rel=1e-6)


@given(low=st.floats(0, 9), width=st.floats(0, 9))
def test_the_spread_between_two_quantiles_is_that_of_a_uniform_draw(low: float, width: float) -> None:
    low += 1
    assert spread_of((low, low + width)) == pytest.approx(width / 12**0.5 / (low + width / 2), abs=1e-7)


def test_no_noise_is_no_noise() -> None:
    assert set(noise_for(H100, 0.0, seed=3).draw([1000] * 500, 0, DECODE)) == {1000}


def test_the_scatter_has_the_error_that_is_stated() -> None:
    errors = Errors(decode=Error(2.04, 4.71), prefill=Error(6.53, 11.97))
    model = Regimes(replace(ROUND, fit=replace(ROUND.fit, errors=errors)))
    for shape, mape in ((DECODE, 2.04), (PREFILL, 6.53), (MIXED, 6.53)):
        drawn = factors(noise_for(model, "profile", seed=3), shape=shape)
        assert abs(drawn - 1).mean() * 100 == pytest.approx(mape, rel=0.05)


def test_a_bundled_profile_scatters_about_as_it_states() -> None:
    """The outermost hundredths are cut, and the bias is no scatter."""
    drawn = factors(noise_for(H100, "profile", seed=3))
    assert abs(drawn - 1).mean() * 100 == pytest.approx(2.42, rel=0.15)


def test_quantiles_that_a_profile_states_are_drawn_from() -> None:
    errors = Errors(decode=Error(1, 2, residuals=(0.9, 1.0, 1.3)), prefill=Error(9, 9))
    model = Regimes(replace(ROUND, fit=replace(ROUND.fit, errors=errors)))
    drawn = factors(noise_for(model, "profile", seed=0))
    mean = (0.95 + 1.15) / 2
    assert (drawn.min(), drawn.max()) == pytest.approx((0.9 / mean, 1.3 / mean), abs=1e-3)
    assert np.median(drawn) == pytest.approx(1.0 / mean, abs=0.005)
    found = residuals(errors)
    assert found is not None
    assert found["mixed"] == found["prefill"] != found["decode"]    # the widest stands in for what is not stated


@given(seed=st.integers(0, 2**70), first=st.integers(0, 10**9), count=st.integers(1, 200), cut=st.integers(0, 200))
def test_a_stretch_may_be_cut_anywhere(seed: int, first: int, count: int, cut: int) -> None:
    noise, lasts = noise_for(Constant(1), 0.3, seed), [10**6 + i for i in range(count)]
    whole = noise.draw(lasts, first, DECODE)
    assert whole[:cut] + noise.draw(lasts[cut:], first + cut, DECODE) == whole if cut < count else True
    assert [noise.draw([ns], step, DECODE)[0] for step, ns in enumerate(lasts, first)] == whole
    assert all(type(ns) is int and ns >= 1 for ns in whole)


def test_seeds_and_replicas_draw_their_own() -> None:
    drawn = {(seed, replica): tuple(noise_for(Constant(1), 0.3, seed, replica).draw([10**6] * 9, 0, DECODE))
             for seed in range(4) for replica in range(4)}
    assert len(set(drawn.values())) == len(drawn)
    assert noise_for(Constant(1), 0.3, 5).draw([10**6] * 9, 0, DECODE) == [
        noise_for(Constant(1), 0.3, 5).draw([10**6], step, DECODE)[0] for step in range(9)]


def test_steps_are_spread_evenly_and_independent() -> None:
    flat = Noise(dict.fromkeys(("decode", "prefill", "mixed"), (0.5, 1.5)), seed=11)
    drawn = factors(flat) - 0.5
    counts, _ = np.histogram(drawn, 20, (0, 1))
    assert abs(counts - 1000).max() < 5 * 1000**0.5
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03


def test_a_step_lasts_at_least_one_ns() -> None:
    assert set(noise_for(Constant(1), 2.0, 0).draw([1] * 500, 0, DECODE)) >= {1}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("profile", "'constant:1' states no error to draw noise from: give a number, as in 0.1"),
        (11.0, "noise must be 'profile' or a share of the mean from 0 to 2, got 11.0"),
    ],
)
def test_what_cannot_be_drawn(how: str | float, message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        noise_for(Constant(1_000_000), how, 0)
    assert str(caught.value) == message


@pytest.mark.parametrize("quantiles", [(0, 0), (-0.1, 1, 2), (-2, 1), (float("nan"), 1)])
def test_quantiles_that_are_no_factors_are_refused(quantiles: tuple[float, ...]) -> None:
    with pytest.raises(CostModelError, match=r"^quantiles of noise must be at least 0, with a mean above 0$"):
        Noise({"decode": quantiles}, seed=0)


def test_graphs_keep_the_residuals() -> None:
    assert CapturedGraphs(H100, (1, 2)).residuals() == H100.residuals()
