"""Measures for campaigns that go wrong: which way, a scenario's seed decides. Other processes import them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from simulator.scenario import Scenario
from simulator.simulation import run

DIES, DIES_ONCE, FAILS, FAILS_ONCE, IS_INTERRUPTED = 91, 92, 93, 94, 95
"""Seeds, and what a point with one does."""


def served(scenario: Scenario) -> dict[str, Any]:
    """A small record of a run."""
    summary = run(scenario).summary()
    told = ("backend", "completed", "duration", "mean_e2el_ms", "trace_digest", "seed")
    return {name: summary[name] for name in told}


def odd(scenario: Scenario, folder: str) -> dict[str, Any]:
    """The same, unless the seed says otherwise; what happens once leaves a mark in the folder."""
    mark = Path(folder) / str(scenario.seed)
    first = not mark.exists()
    with mark.open("a") as file:
        file.write("x")
    if scenario.seed == DIES or (scenario.seed == DIES_ONCE and first):
        os.kill(os.getpid(), signal.SIGKILL)
    if scenario.seed == FAILS or (scenario.seed == FAILS_ONCE and first):
        raise ValueError("out of\nluck")
    if scenario.seed == IS_INTERRUPTED and first:
        raise KeyboardInterrupt
    return served(scenario)


def tries(folder: Path, seed: int) -> int:
    """How often a point with this seed was begun."""
    return len((folder / str(seed)).read_text())


def edits(scenario: Scenario, path: str, at: int) -> dict[str, Any]:
    """The same, but for the point with that seed a line is added to the file before."""
    if scenario.seed == at:
        with open(path, "a") as file:
            file.write("# and more\n")
    return served(scenario)
