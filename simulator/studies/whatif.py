"""what_if: the same requests again and again under other settings, fast enough to follow a slider.

It knows no widget: a notebook binds sliders to `WhatIf.ask`, and shows what that gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import traces
from simulator.policies import StaticBatching, Vllm
from simulator.replication import only_one_replica
from simulator.result import Result
from simulator.scenario import Scenario, scenario_of
from simulator.simulation import run
from simulator.studies.sections import measured
from simulator.tables import Table
from simulator.traffic import as_read, read_trace, with_trace
from traces import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("completed", "rejected", "duration", "request_throughput", "output_throughput", "ttft", "tpot", "e2el",
         "slot_utilization", "mean_batch_size", "kv_usage_max", "preemptions")
"""Metrics of the table, by their names in METRICS."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one setting comes to.

    Attributes:
        results: Result by policy, "static" first.
    """

    results: Mapping[str, Result]

    def table(self) -> Table:
        """The two policies side by side."""
        return measured("With these settings", self.results, SHOWN)

    def figure(self) -> Figure:
        """Effective batch and queue over time."""
        from simulator.plots.whatif import whatif_figure
        return whatif_figure(self.results)


@dataclass(frozen=True)
class WhatIf:
    """Traffic that has been read, and waits for settings.

    Attributes:
        scenario: All that the settings leave as it is, with the trace at hand.
    """

    scenario: Scenario

    @property
    def trace(self) -> Trace:
        """The requests that are replayed."""
        return read_trace(self.scenario)

    def ask(self, *, batch_cap: int | None = None, kv_capacity_tokens: float | None = None,
            max_num_batched_tokens: int | None = None, request_rate: float | None = None,
            output_spread: float = 1.0) -> Outcome:
        """Replay the requests through both policies.

        Args:
            batch_cap: Most sequences at once: `max_batch_size` of static, `max_num_seqs` of vllm.
            kv_capacity_tokens: KV pool of both, in tokens.
            max_num_batched_tokens: Tokens a step of vllm, and so its longest chunk of a prompt.
            request_rate: Poisson arrivals of so many a second in place of the scenario's.
            output_spread: Of the output lengths, at their own mean: see `traces.spread`.

        What is None stays as the scenario has it.

        Raises:
            InputError: A setting is none, or two of them do not go together.
            TraceError: The outputs cannot be spread.
        """
        settings = {"kv_capacity_tokens": kv_capacity_tokens, "request_rate": request_rate}
        changes: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        base = self._spread(output_spread).but(**changes)
        policies = {"static": StaticBatching(max_batch_size=batch_cap),
                    "vllm": Vllm(max_num_seqs=batch_cap, max_num_batched_tokens=max_num_batched_tokens)}
        return Outcome({label: run(base.but(policy=policy)) for label, policy in policies.items()})

    def _spread(self, power: float) -> Scenario:
        """The scenario with these outputs; its trace is then one in memory, of which nothing more is to be made."""
        trace = traces.spread(self.trace, power)
        return self.scenario if power == 1 else with_trace(self.scenario, trace)


def what_if(trace: Trace | str = "azure-conv-2023", **options: Any) -> WhatIf:
    """Read a trace once, to ask what static batching and vLLM make of it under other settings.

    `options` are the other fields of Scenario.

    Example:
        >>> asked = what_if("azure-conv-2023", num_prompts=200)
        >>> found = asked.ask(batch_cap=8, request_rate=20).results
        >>> {label: round(result.summary()["output_throughput"]) for label, result in found.items()}
        {'static': 405, 'vllm': 859}
    """
    scenario = scenario_of(trace=trace, **options)
    only_one_replica("what_if", scenario)
    return WhatIf(as_read(scenario))


__all__ = ["Outcome", "WhatIf", "what_if"]
