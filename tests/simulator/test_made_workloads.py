"""Workloads made from distributions, and step costs stated in a few numbers: closed forms of both."""

from __future__ import annotations

from math import expm1

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models import CostModelError, StepShape
from simulator.studies.reproduce.stated import Stated
from simulator.studies.reproduce.workloads import Lengths, Workload


def test_uniform_lengths_are_all_there_equally_often() -> None:
    assert Lengths("uniform", lowest=3, highest=6).quantiles(8).tolist() == [3, 3, 4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize(("cap", "mean"), [(32, 15.3), (128, 53.5), (512, 118.4), (1536, 128.0)])
def test_drawing_again_above_a_cap_gives_the_truncated_mean_and_clipping_would_not(cap: int, mean: float) -> None:
    """E[x | x <= cap] = m - cap / (exp(cap / m) - 1), within the half token of the rounding."""
    found = Lengths("exponential", mean=128.0, redrawn_above=cap).quantiles(4000)
    assert found.mean() == pytest.approx(128 - cap / expm1(cap / 128), abs=0.5)
    assert found.mean() == pytest.approx(mean, abs=0.5)
    assert found.max() <= cap


def test_a_lognormal_has_its_mean_and_median() -> None:
    found = Lengths("lognormal", mean=300.0, sigma=0.9).quantiles(20_001)
    assert found.mean() == pytest.approx(300, rel=0.01)
    assert np.median(found) == pytest.approx(300 * np.exp(-0.9 ** 2 / 2), abs=1)
    assert Lengths("lognormal", mean=300.0, sigma=0.9, redrawn_above=500).quantiles(999).max() <= 500


@given(st.sampled_from([("exponential", None), ("lognormal", 0.8)]), st.floats(1, 500), st.integers(1, 900),
       st.integers(1, 200))
def test_lengths_are_whole_at_least_one_ascending_and_below_the_cap(kind: tuple[str, float | None], mean: float,
                                                                    cap: int, rows: int) -> None:
    found = Lengths(kind[0], mean=mean, sigma=kind[1], redrawn_above=cap).quantiles(rows)
    assert len(found) == rows
    assert 1 <= found.min() <= found.max() <= cap
    assert (np.diff(found) >= 0).all()


def made(**options: object) -> Workload:
    lengths = {"prompt": Lengths("uniform", lowest=1, highest=90), "output": Lengths("uniform", lowest=1, highest=30)}
    return Workload(**{"requests": 30, **lengths, **options})    # type: ignore[arg-type]


def test_a_seed_moves_rows_and_no_length() -> None:
    one, same, other = made().trace("w", 1), made().trace("w", 1), made().trace("w", 2)
    assert one.digest == same.digest != other.digest
    assert sorted(one.prompt.tolist()) == sorted(other.prompt.tolist())


def test_pairs_that_are_too_long_are_left_out() -> None:
    trace = made(max_total=60).trace("w", 0)
    assert len(trace) == 30
    assert (trace.prompt + trace.output).max() <= 60
    with pytest.raises(CostModelError, match=r"most requests come to more than max_total \(2\): raise it"):
        made(max_total=2).trace("w", 0)


def test_a_second_pass_shares_every_block_with_the_first_and_none_inside_a_pass() -> None:
    trace = made(passes=2, pass_every_s=5.0, hash_block=4).trace("w", 0)
    assert trace.arrival.tolist() == [0] * 30 + [5_000_000_000] * 30
    assert trace.hash_ids is not None
    rows = list(trace.hash_ids)
    assert rows[:30] == rows[30:]
    blocks = [one for ids in rows[:30] for one in ids]
    assert len(blocks) == len(set(blocks)) == sum(-(-prompt // 4) for prompt in trace.prompt[:30].tolist())


@pytest.mark.parametrize(("fields", "complaint"), [
    ({"kind": "exponental", "mean": 3.0}, "unknown distribution 'exponental': did you mean 'exponential'?"),
    ({"kind": "lognormal", "mean": 3.0}, "lognormal lengths need 'sigma'"),
])
def test_what_is_no_distribution(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(CostModelError) as caught:
        Lengths(**fields)    # type: ignore[arg-type]
    assert str(caught.value).startswith(complaint)


COST = Stated(base_ms=20, why="a test", per_seq_ms=0.5, per_context_token_ms=0.001, per_prompt_token_ms=0.1,
              floor_ms=30, host_ms=3)


def test_stated_costs_by_hand() -> None:
    assert COST.time(StepShape(2, 1000)) == 33_000_000, "the floor: 20 + 1 + 1 < 30"
    assert COST.time(StepShape(20, 4000)) == 37_000_000, "20 + 10 + 4 + 3"
    assert COST.time(StepShape(0, 0, ((512, 0),))) == 54_200_000, "51.2 + 3"
    assert COST.time(StepShape(0, 0, ((10, 0),))) == 23_000_000, "the base, which hides one token's arithmetic"
    assert COST.time(StepShape(2, 1000, ((100, 0),))) == 43_000_000, "decodes at the floor, then 10 of prompt, then 3"
    assert COST.name == "stated: max(30, 20 + 0.001 C + 0.5 S) + 0.1 n + 3"
    with pytest.raises(CostModelError):
        COST.time(StepShape(0, 0))


@given(st.integers(1, 40), st.integers(0, 20_000), st.integers(1, 200))
def test_a_stretch_costs_what_its_steps_cost(decodes: int, context: int, steps: int) -> None:
    shape = StepShape(decodes, context)
    assert COST.decode_times(shape, steps) == [COST.time(StepShape(decodes, context + at * decodes))
                                               for at in range(steps)]
