"""Filling: the load that would keep every slot busy, worked out from the cost model without a simulation.

With B slots full, B / output requests finish in a step and as many prompts take their places. A step then lasts as long
as B decodes and these prompts, and the load is the finishers over that time. It is an estimate: prompts are taken one
by one and whole, and the mean request stands for all. Where memory leaves fewer slots than the cap, B is what it
sustains on average, and not the most that it ever held: that many were there while their answers were still short.
What preemptions throw away is not in it, so that a tight memory serves some percent less.
"""

from __future__ import annotations

import numpy as np

from cost_models import CostModel, StepShape
from simulator.columns import Ints
from simulator.ledger import Ledger
from simulator.setup import Setup

SAMPLED = 32
"""Prompts that stand for all: so many quantiles of their lengths."""
MOST_SLOTS = 1_000_000
"""Nobody fills more, and what a step of them takes is beyond every cost model."""

TAKES_SLOT = ("decode", "prefill", "recompute", "held", "behind_prefill", "stalled")
TAKES_KV = ("holding", "reserved", "internal")
"""Parts of the ledgers that are of requests that run."""


def sustained_slots(most: int, capacity: int, slots: Ledger, kv: Ledger) -> int:
    """How many of `most` slots a memory of `capacity` tokens keeps busy, by what a slot held on average in a run."""
    taken, held = (sum(ledger.parts[part] or 0 for part in parts)
                   for ledger, parts in ((slots, TAKES_SLOT), (kv, TAKES_KV)))
    return min(most, max(1, round(capacity * taken / held))) if held else most


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
