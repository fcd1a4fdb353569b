"""Every layout that is accepted serves everybody; any other is refused before anything runs."""

from __future__ import annotations

import pytest
from worlds import trace_of

import cost_models
from cost_models import Constant, CostModelError
from simulator.policies import Orca
from simulator.simulation import simulate

TRACE = trace_of([(at * 1000, 30, 1 + at % 7) for at in range(40)])


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 8, 9])
def test_any_number_of_pipeline_stages_serves_everybody(stages: int) -> None:
    found = simulate(TRACE, Orca(max_bs=2, pipeline_stages=stages), cost_model=Constant(20), kv_capacity_tokens=4000)
    assert found.summary()["completed"] == len(TRACE)
    assert found.summary()["total_output_tokens"] == int(TRACE.output.sum())


@pytest.mark.parametrize("size", range(1, 10))
def test_gpus_that_share_a_model_serve_everybody_or_are_refused(size: int) -> None:
    """8 KV heads are dealt to 1, 2, 4 or 8 GPUs."""
    if size in (1, 2, 4, 8):
        assert simulate(TRACE, tensor_parallel_size=size).summary()["completed"] == len(TRACE)
        return
    with pytest.raises(CostModelError) as told:
        simulate(TRACE, tensor_parallel_size=size)
    assert str(told.value) == (f"tensor_parallel_size {size} does not deal the 32 heads and 8 KV heads of llama-3.1-8b "
                               "evenly (possible: 1, 2, 4, 8, 16, 32)")


def test_more_gpus_leave_more_than_their_number_of_times_the_cache() -> None:
    """The weights are there once, however many share them: what tensor parallelism has over replicas."""
    one, two = (cost_models.kv_pool("llama-3.1-8b", "h100-80", tensor_parallel_size=size).tokens for size in (1, 2))
    assert two > 2 * one
