"""The question that started it, on the public trace: how many GPUs for an hour of conversations, ten times as fast?"""

from __future__ import annotations

from pathlib import Path

import pytest

import simulator as sim


@pytest.mark.slow
def test_its_neighbours_confirm_the_answer(shared: Path) -> None:
    trace = shared / "traces" / "azure-2023" / "AzureLLMInferenceTrace_conv.csv"
    if not trace.exists():
        pytest.skip("needs the Azure 2023 conversation trace, which is not here")
    found = sim.plan(str(trace), rate_scale=10, goodput={"ttft": 500, "tpot": 50})
    holds = [found.best.runs.verdict(probe.replicas).holds for probe in found.around.neighbours]
    assert (found.replicas, holds) == (4, [False, True, True])
    for replicas, enough in ((3, False), (4, True)):    # once more, without any of the plan's own machinery
        run = sim.simulate(str(trace), rate_scale=10, goodput={"ttft": 500, "tpot": 50}, replicas=replicas).summary()
        good = run["request_goodput"] * run["duration"] / run["num_prompts"]
        assert (good >= 0.99) is enough
