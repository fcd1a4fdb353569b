"""Haste: objectives that no request can keep, because no step is so short: seconds, more often than not, given as ms.

It knows what the shortest step costs, and no run. How long a prompt takes, and who waits, comes on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cost_models import CostModel, StepShape
from simulator.counting import plainly

SHORTEST = (StepShape(1, 1), StepShape(0, 0, ((1, 0),)))
"""A step that decodes one token, and one that computes the only token of a prompt."""
AT_LEAST_A_STEP = ("ttft", "e2el")
"""Latencies that no step can be left out of."""


def too_hasty(limits: Mapping[str, float], cost: CostModel) -> Iterator[str]:
    """A line for each limit, in ms, that is shorter than the shortest step of the cost model.

    Example:
        >>> from cost_models import Constant
        >>> list(too_hasty({"ttft": 0.5, "tpot": 50}, Constant(8_000_000)))[0]
        'goodput ttft:0.5 is kept by nobody: the shortest step takes 8 ms, and limits are in ms (0.5 s is ttft:500)'
    """
    shortest = min(map(cost.time, SHORTEST)) / 1e6
    for name in AT_LEAST_A_STEP:
        limit = limits.get(name)
        if limit is not None and limit < shortest:
            yield (f"goodput {name}:{limit:g} is kept by nobody: the shortest step takes {plainly(shortest)} ms, and "
                   f"limits are in ms ({limit:g} s is {name}:{1000 * limit:g})")
