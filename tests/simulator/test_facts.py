"""What is said of how far a cost model is to be trusted: its error, what that is an error of, and its range."""

from __future__ import annotations

import pytest

from cost_models import Constant, bundled_profiles, cost_model
from simulator.facts import UNTRIED, trust_in
from simulator.studies.capacity.story import _whose


def model_of(name: str) -> tuple[str, float, str]:
    """Its error as it is told, the bias that it states, and how a plan calls that bias."""
    profile = bundled_profiles()[name]
    cost = cost_model(name, model=profile.model, gpu=profile.gpu, tensor_parallel_size=profile.tensor_parallel_size)
    bias = cost.stated_bias()
    assert bias is not None
    return trust_in(cost)[0], bias, _whose(bias, cost)


def test_an_error_against_kernel_times_is_not_taken_for_one_against_an_engine() -> None:
    told, bias, whose = model_of("llama-3.1-8b-h100-80-bf16")
    assert told.startswith("its error: on average, steps may be 1.1% shorter or longer; nine decode steps in ten take ")
    assert told.endswith(f"; all this of steps put together from the times of single kernels: {UNTRIED}")
    assert bias == pytest.approx(0.0106)
    assert whose == (f"as the cost model errs where it is held against kernel times ({UNTRIED}; --error-band 10 tries "
                     "10%)")


def test_an_error_against_an_engine_stands_for_itself() -> None:
    told, _, whose = model_of("llama-2-70b-a100-80-tp4-bf16")
    assert UNTRIED not in told
    assert whose == "as the cost model may err"


def test_what_somebody_asks_for_is_nobodys_error() -> None:
    assert _whose(0.1, Constant(1)) == "as asked"
    assert trust_in(Constant(1)) == ["its error: none is stated", "its range: none is stated"]


@pytest.mark.parametrize("name", bundled_profiles())
def test_every_profile_says_what_its_errors_are_of(name: str) -> None:
    """Whoever timed kernels only says so in the source, and then the errors are not those of an engine."""
    profile = bundled_profiles()[name]
    kernels = "kernels" in profile.origin.source
    assert profile.fit.held_against == ("kernels" if kernels else "engine")
