"""A biased model is the one inside, every step so much shorter or longer."""

from dataclasses import replace
from pathlib import Path

import pytest

from cost_models import Biased, Constant, CostModelError, Regimes, StepShape, read_profile
from cost_models.fits import Error, Errors
from cost_models.profile import RequestOverhead

ROUND = read_profile(Path(__file__).with_name("round.yaml"))


def test_steps_are_scaled_and_requests_are_not() -> None:
    inside = Regimes(replace(ROUND, request=RequestOverhead("assumed", 8.0)))
    shape = StepShape(3, 300)
    assert Biased(inside, 0.9).time(shape) == round(0.9 * inside.time(shape))
    assert Biased(inside, 0.9).request_overhead == inside.request_overhead == 8_000_000
    assert Biased(Constant(1), 0.1).time(shape) == 1
    assert (Biased(inside, 1.05).name, Biased(inside, 0.95).name) == ("round +5%", "round -5%")


@pytest.mark.parametrize("factor", [0, -1, float("inf"), float("nan")])
def test_a_factor_must_be_one(factor: float) -> None:
    with pytest.raises(CostModelError, match=r"^the factor of a bias must be above 0, got "):
        Biased(Constant(1), factor)


def stating(**errors: Error) -> Regimes:
    return Regimes(replace(ROUND, fit=replace(ROUND.fit, errors=Errors(**errors))))


def test_the_stated_bias_is_the_largest_one() -> None:
    assert stating().stated_bias() is None
    assert stating(decode=Error(3, 9, -0.5), mixed=Error(4, 9, 0.25)).stated_bias() == 0.005    # type: ignore[arg-type]
    assert stating(decode=Error(3, 9, -0.5), prefill=Error(2, 9)).stated_bias() == 0.02    # type: ignore[arg-type]
    assert Biased(stating(decode=Error(3, 9)), 2).stated_bias() == 0.03
    assert Constant(5).stated_bias() is None
