"""The bill of a run: what its GPU time costs at the scenario's prices. It prices no share of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.balance import gpu_seconds

if TYPE_CHECKING:
    from simulator.result import Result

HOUR, MILLION = 3600, 10 ** 6


def bill(result: Result) -> dict[str, Any]:
    """Dollars in all and for a million output tokens, by their names in a summary; None without a price of its GPU."""
    price, tokens = result.scenario.prices.get(result.scenario.gpu), int(result.timeline.output.sum())
    dollars = None if price is None else gpu_seconds(result) / HOUR * price
    return {"dollars": dollars, "dollars_per_million_output_tokens":
            None if dollars is None or not tokens else dollars / tokens * MILLION}
