"""The band of a run is what the run comes to with every step shorter, and with every step longer."""

from __future__ import annotations

import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Biased, Constant
from simulator.errors import InputError
from simulator.facts import UNTRIED
from simulator.remarks import band_remark
from simulator.scenario import scenario_of

ROWS = [(at * 100_000_000, 20, 5) for at in range(6)]
COST = Constant(10_000_000)


def run(**options: object) -> sim.Result:
    return sim.run(scenario_of(**({"trace": trace_of(ROWS), "cost_model": COST, "max_tokens": "exact"} | options)))


def test_a_band_by_hand() -> None:
    """Every request is alone: 5 steps of 10 ms, so TTFT and TPOT are one step each."""
    found = run(error_band=10).summary()
    assert found["error_band_percent"] == pytest.approx(10)
    assert (found["mean_ttft_ms"], found["mean_ttft_ms_low"], found["mean_ttft_ms_high"]) == (10, 9, 11)
    assert (found["mean_tpot_ms_low"], found["mean_tpot_ms_high"]) == (9, 11)
    assert found["output_throughput_high"] == pytest.approx(30 / (0.5 + 5 * 0.009))


def test_its_ends_are_the_runs_with_biased_costs() -> None:
    found = run(error_band=25.0).summary()
    for factor, end in ((0.75, "low"), (1.25, "high")):
        assert run(cost_model=Biased(COST, factor)).summary()["mean_ttft_ms"] == found[f"mean_ttft_ms_{end}"]


def test_the_run_itself_is_untouched() -> None:
    plain, banded = run(), run(error_band=10)
    assert (plain.band, plain.summary()["error_band_percent"]) == (None, None)
    assert banded.record.ends.tolist() == plain.record.ends.tolist()
    without = {name for name, value in plain.summary().items() if banded.summary()[name] != value}
    assert all(name.endswith(("_low", "_high")) or name == "error_band_percent" for name in without)


def test_stated_is_what_the_cost_model_states() -> None:
    found = run(cost_model="auto", error_band="stated").summary()
    assert found["error_band_percent"] == pytest.approx(1.06)    # the H100 profile: the bias of its prefill


def test_a_band_of_kernel_times_says_that_no_engine_was_held_against_them() -> None:
    said, given = (band_remark(run(cost_model="auto", error_band=band)) for band in ("stated", 1.06))
    assert said == f"{given}; held against the times of single kernels, for {UNTRIED}"


def test_without_a_stated_error_it_says_so() -> None:
    result = run(error_band="stated")
    assert result.band is None
    assert band_remark(result) == "no error band: constant:10 states no error; --error-band 5 takes 5%"
    assert band_remark(run()) is None


def test_the_band_in_words() -> None:
    assert band_remark(run(error_band=10)) == (
        "with every step 10% shorter or longer: output tokens/s 54.05 to 55.05, mean TTFT in ms 9 to 11, "
        "mean TPOT in ms 9 to 11")


def test_a_policy_that_returns_whole_answers_has_no_tpot() -> None:
    found = run(policy="static", error_band=10).summary()
    assert (found["mean_tpot_ms_low"], found["mean_tpot_ms_high"]) == (None, None)
    assert found["mean_ttft_ms_low"] < found["mean_ttft_ms"] < found["mean_ttft_ms_high"]


def test_progress_is_told_of_all_three_runs_as_one() -> None:
    told: list[tuple[int, int]] = []
    sim.run(scenario_of(trace=trace_of(ROWS), cost_model=COST, error_band=1),
            progress=lambda answered, accepted: told.append((answered, accepted)))
    assert told == [(6, 18), (12, 18), (18, 18)]


@pytest.mark.parametrize(("band", "words"), [
    (0, "error_band must be above 0, not 0"), (-1, "must be above 0"), ("much", "must be above 0"),
    (100, "error_band must be below 100 percent, not 100"),
])
def test_a_band_must_be_one(band: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        scenario_of(error_band=band)
