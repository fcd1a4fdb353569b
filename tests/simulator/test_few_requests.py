"""Runs of no request, one, two and three: every figure is a number or nothing, and percentiles are numpy's."""

from __future__ import annotations

import json
from math import isfinite

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from simulator.metrics import METRICS
from simulator.scenario import Scenario

PERCENTILES = (0, 50, 90, 99, 100)


@pytest.mark.parametrize("policy", ["vllm", "static", "tgi", "sglang", "orca"])
@pytest.mark.parametrize("output", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_requests_have_figures_or_none(policy: str, output: int, n: int) -> None:
    """Warnings are errors here, so that no mean of nothing is taken either."""
    result = sim.run(Scenario(trace_of([(at * 10 ** 7, 5, output) for at in range(n)]), policy,
                              cost_model="constant:1", goodput={"ttft": 50, "tpot": 5}))
    summary = result.summary(PERCENTILES)
    assert all(isfinite(value) for value in summary.values() if isinstance(value, float))
    assert (summary["mean_ttft_ms"] is None) == (n == 0)
    for name in (name for name, metric in METRICS.items() if metric.spread):
        found = result.latency(name)
        values = found.values if found.weights is None else np.repeat(found.values, found.weights)
        assert [found.percentile(percent) for percent in PERCENTILES] == (
            np.percentile(values, PERCENTILES).tolist() if len(values) else [None] * len(PERCENTILES))
    assert "nan" not in (str(result) + result._repr_html_()).lower().replace("finance", "")
    assert json.loads(result.to_json(detailed=True))["completed"] == n == len(result.requests)
    assert len(list(result.trace_events())) > n
