"""Work: where the GPUs' time went - prompts, output tokens, nothing - and what was served for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cost_models import CostModel, StepShape
from simulator.ledger import durations
from simulator.record import Record
from simulator.result import Result

MOST_MIXED = 2000
"""Steps with both prompts and decodes that are priced once more without their prompts; more are judged by these."""


@dataclass(frozen=True)
class Work:
    """Seconds of replicas, and the tokens of the requests that were answered.

    Attributes:
        prefill: Steps with prompts only, and what prompts add to the others.
        decode: The rest of the time in which steps run.
        elapsed: From the first request sent to the end of the last step, times the replicas.
        prompt_tokens, output_tokens: Of the requests answered.
    """

    prefill: float
    decode: float
    elapsed: float
    prompt_tokens: int
    output_tokens: int

    @property
    def busy(self) -> float:
        """Seconds in which steps run."""
        return self.prefill + self.decode

    @property
    def idle(self) -> float:
        """Seconds in which replicas stand by, to the nanosecond."""
        return max(round(self.elapsed - self.busy, 9), 0.0)

    @property
    def busy_share(self) -> float:
        """The part of the time in which steps run; 0 for no time."""
        return min(self.busy / self.elapsed, 1.0) if self.elapsed else 0.0


def work_of(result: Result) -> Work:
    """Where the time of this run's replicas went."""
    record, line = result.record, result.timeline
    took = durations(record)
    prompts, decodes = record.plan("chunks") > 0, record.plan("decodes") > 0
    mixed = took[prompts & decodes].sum() * _added_by_prompts(record, result.setup.cost)
    prefill = float(took[prompts & ~decodes].sum() + mixed)
    ends = int(record.ends.max() - record.sent[:, 1].min()) if len(record.ends) else 0
    return Work(prefill / 1e9, (float(took.sum()) - prefill) / 1e9, result.scenario.replicas * ends / 1e9,
                int(line.prompt.sum()), int(line.output.sum()))


def _added_by_prompts(record: Record, cost: CostModel) -> float:
    """The share of mixed steps' time that they would not take without their prompts."""
    mixed = np.flatnonzero((record.plan("chunks") > 0) & (record.plan("decodes") > 0))
    some = mixed[:: -(-len(mixed) // MOST_MIXED) or 1]
    took = durations(record)[some].sum()
    alone = sum(cost.time(StepShape(decodes, context)) for decodes, context in zip(
        record.plan("decodes")[some].tolist(), record.plan("context")[some].tolist(), strict=True))
    return max(0.0, 1 - alone / int(took)) if took else 0.0
