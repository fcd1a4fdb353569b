"""The host time of a recorded run is found again, from its even requests alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import simulator as sim
from calibration.tuning import tuned_host
from cost_models import Regimes, bundled_profiles
from cost_models.profile import Host
from simulator.engine_runs import EngineRun, read_run

PROFILE = bundled_profiles()["llama-3.1-8b-h100-80-bf16"]


def recorded(host_ms: float, tmp_path: Path) -> EngineRun:
    """A simulated run in the place of a recorded one, of an engine with that host time."""
    cost = Regimes(replace(PROFILE, host=Host("measured", host_ms)))
    result = sim.simulate("azure-conv-2023", cost_model=cost, num_prompts=80, max_tokens="exact")
    return read_run(result.save(tmp_path / "run.json", detailed=True)[0])


@pytest.mark.parametrize("host_ms", [0.0, 0.73, 2.5])
def test_it_is_found_again(host_ms: float, tmp_path: Path) -> None:
    assert tuned_host(PROFILE, recorded(host_ms, tmp_path)) == Host("measured", pytest.approx(host_ms, abs=0.011))


def test_the_odd_requests_are_not_looked_at(tmp_path: Path) -> None:
    run = recorded(1.0, tmp_path)
    late = tuple(served._replace(last=served.last + 5) if at % 2 else served for at, served in enumerate(run.served))
    assert tuned_host(PROFILE, replace(run, served=late)) == tuned_host(PROFILE, run)
