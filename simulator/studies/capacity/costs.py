"""Costs: what a million tokens cost at the objectives and flat out, prompts and output apart, idle time apart.

Nobody can say what share of a step its prompts cost but by a rule. Here prompts are charged what a step would not take
without them, and output tokens the rest: the reading of the weights among it, since answers would need that anyway.
Time in which a replica stands by is charged to nobody and told apart; it is the price of the objectives.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from simulator.studies.capacity.work import Work

MILLION = 1_000_000


@dataclass(frozen=True)
class Cost:
    """What a million tokens cost, in dollars, or in GPU-hours where no price is given.

    Attributes:
        total: All that was spent, a million tokens, prompts and output alike.
        all_on_output: All that was spent, a million output tokens: the figure that is most often told.
        prompt: What prompts took, a million of their tokens.
        output: What output tokens took, a million of them.
        idle: What was spent on replicas that stood by, a million tokens, prompts and output alike.
        busy: The share of the time in which steps run.
    """

    total: float | None
    all_on_output: float | None
    prompt: float | None
    output: float | None
    idle: float | None
    busy: float

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def cost_of(work: Work, gpus: int, price: float | None) -> Cost:
    """What this work cost on replicas of so many GPUs, at a price for a GPU-hour; None: told in GPU-hours."""
    hour = gpus * (1.0 if price is None else price) / 3600
    tokens = work.prompt_tokens + work.output_tokens
    return Cost(_each(work.elapsed * hour, tokens), _each(work.elapsed * hour, work.output_tokens),
                _each(work.prefill * hour, work.prompt_tokens), _each(work.decode * hour, work.output_tokens),
                _each(work.idle * hour, tokens), work.busy_share)


def _each(spent: float, tokens: int) -> float | None:
    return spent * MILLION / tokens if tokens else None
