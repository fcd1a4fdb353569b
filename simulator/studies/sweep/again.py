"""Again: the best point of a search beside the scenario as given, on traffic that the search has not seen.

Of many points the best one owes a part of its figure to chance, for it was chosen by that very figure: on other traffic
of the same kind it comes to less. So both are run with seeds that follow that of the search, in pairs. Where nothing is
drawn there is no other traffic, and what chance gives is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.studies.campaign import Found
from simulator.studies.differences import Difference, difference
from simulator.studies.replications import is_drawn
from simulator.studies.sweep import Sweep
from simulator.studies.sweep.variants import Variant
from simulator.studies.sweep.words import words

FRESH = 5
"""Seeds of both."""


def again(given: Variant, best: Variant, objective: str, seed: int, run: Callable[..., Sweep]) -> Difference | None:
    """The best point beside the scenario as given, with FRESH seeds after `seed`; None where nothing is drawn.

    Args:
        given, best: The scenario as given, and the best point, which differs from it.
        objective: What it was chosen by.
        seed: That of the search.
        run: `sweep`, with all options but points, seed and replications.
    """
    if not is_drawn(given.scenario):
        return None
    heard = run(points=[{}, best.values], seed=seed + 1, replications=FRESH)
    sides: dict[str, list[Any]] = {given.point: [], best.point: []}
    for key, variant in heard.variants.items():
        outcome = heard.outcomes[key]
        sides[variant.point].append(outcome.value.get(objective) if isinstance(outcome, Found) else None)
    return difference(objective, best.point, sides[given.point], sides[best.point])


def told(found: Difference | None, objective: str, seed: int, points: int) -> str:
    """What came of it, in words."""
    chosen = f"the best of {points:,} points is told by the traffic that chose it, and looks better than it is"
    if found is None:
        return f"Mind that {chosen}; other requests, or another part of the trace, would show by how much."
    gain = found.difference
    return (f"As {chosen}, it was run again with seeds {seed + 1} to {seed + FRESH}: {words(objective)} "
            f"{found.other.mean:,.4g} on the mean, {found.baseline.mean:,.4g} as given, a difference of "
            f"{gain.mean:+,.4g} ({gain.level:.0%} interval {gain.low:+,.4g} to {gain.high:+,.4g}, in pairs).")

