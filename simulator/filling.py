"""Filling: the load that would keep every slot busy, worked out from the cost model without a simulation.

With B slots full, B / output requests finish in a step and as many prompts take their places. A step then lasts as long
as B decodes and these prompts, and the load is the finishers over that time. It is an estimate: prompts are taken one
by one and whole, and the mean request stands for all.
"""

from __future__ import annotations

import numpy as np

from cost_models import CostModel, StepShape
from simulator.columns import Ints
from simulator.setup import Setup

SAMPLED = 32
"""Prompts that stand for all: so many quantiles of their lengths."""
MOST_SLOTS = 1_000_000
"""Nobody fills more, and what a step of them takes is beyond every cost model."""


def filling_rate(setup: Setup, slots: int, computed: float = 1.0) -> float | None:
    """Requests a second, about; None without requests or slots, with too many, or where none is refilled by itself.

    Args:
        setup: Of the run.
        slots: How many there are to fill.
        computed: Share of the prompts that is computed, and not found in a prefix cache.
    """
    served = setup.verdict == 0
    if not setup.policy.streams or not served.any() or not 0 < slots <= MOST_SLOTS:
        return None
    prompt, output = setup.prompt[served], setup.output[served]
    context = int((output * (prompt + output // 2)).sum()) / int(output.sum())    # as long as each is there
    decodes = StepShape(slots, round(slots * context))
    joining = slots / float(output.mean())
    lasts = setup.cost.time(decodes) + joining * _prompt_cost(setup.cost, decodes, prompt, computed)
    return joining / lasts * 1e9


def _prompt_cost(cost: CostModel, decodes: StepShape, prompt: Ints, computed: float) -> float:
    """By how many ns the mean prompt makes a step of these decodes longer."""
    lengths = np.quantile(prompt, (np.arange(SAMPLED) + 0.5) / SAMPLED)
    news = [max(1, round(length * computed)) for length in lengths]
    chunks = [(new, max(0, round(length) - new)) for new, length in zip(news, lengths, strict=True)]
    alone = cost.time(decodes)
    return sum(cost.time(decodes._replace(chunks=(chunk,))) - alone for chunk in chunks) / SAMPLED
