"""What is said of how far a cost model is to be trusted: its error, what that is an error of, and its range."""

from __future__ import annotations

import pytest
from worlds import trace_of

from cost_models import Constant, bundled_profiles, cost_model
from simulator import simulate
from simulator.facts import UNTRIED, assumed, facts_of, trust_in
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


def test_a_range_is_told_where_it_ends() -> None:
    class Bounded(Constant):
        bounds = (1, 64, 0, float("inf"), 1, 8192, 0, float("inf"))

    assert trust_in(Bounded(1))[1] == "its range: 1 to 64 sequences that decode; 1 to 8,192 new prompt tokens"


@pytest.mark.parametrize(("pool", "told"), [(float("inf"), "without a bound"),
                                            (1616, "100 blocks of 16 tokens, 0.2 GiB, as given")])
def test_how_large_the_pool_is(pool: float, told: str) -> None:
    result = simulate(trace_of([(0, 5, 5)]), cost_model=Constant(1), kv_capacity_tokens=pool)
    assert assumed(result.setup, result.memory)[-2:] == [
        f"KV pool: {told}", "cost model: constant:1e-06; no error is stated"]


@pytest.mark.parametrize(("tokens", "told"), [(float("inf"), "without a bound, as given"), (1, "1 token, as given"),
                                              (1616, "1,616 tokens, as given")])
def test_a_pool_as_it_was_given_is_told_in_words(tokens: float, told: str) -> None:
    result = simulate(trace_of([(0, 4, 2)]), cost_model=Constant(1), kv_capacity_tokens=tokens)
    assert f"KV pool: {told}" in facts_of(result.setup)
