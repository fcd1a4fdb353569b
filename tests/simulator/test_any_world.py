"""Any world that can be drawn: every invariant holds, fast is exact, the same is the same, the metrics are the log's.

Each policy of POLICIES plays worlds of each kind in which everything is drawn: see `drawn.scenarios` for what a world
has, `drawn.checks` and `invariants` for what is true of it, `drawn.plain` for the metrics once more. EXAMPLES=1000
plays so many of each policy and kind.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from drawn.knobs import KNOBS
from drawn.play import play
from drawn.scenarios import KINDS

from simulator.policies import POLICIES

EXAMPLES = os.environ.get("EXAMPLES")
EVERY = pytest.mark.parametrize("name", POLICIES)


def played(name: str, worlds: int, start: int) -> Counter[str]:
    """So many worlds of each kind; few of them are refused or stall."""
    counts = sum((play(name, kind, int(EXAMPLES or worlds), start) for kind in KINDS), Counter[str]())
    assert counts["worlds"] > 4 * (counts["refused"] + counts["stalled"])
    return counts


@EVERY
def test_hundreds_of_worlds(name: str) -> None:
    counts = played(name, 12, 0)
    assert min(counts[what] for what in ("clusters", "answered", "cancelled")) > 0


@pytest.mark.slow
@EVERY
def test_thousands_of_worlds(name: str) -> None:
    counts = played(name, 45, 1)
    assert counts["steps"] > 4000
    assert counts["turned away"] > 0


@EVERY
def test_every_knob_is_drawn(name: str) -> None:
    assert KNOBS[name].keys() == POLICIES[name].knobs().keys()
