"""Balance: how the work was spread over the replicas, and for how long they are paid. It knows no tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.ledger import durations
from simulator.served import Served

if TYPE_CHECKING:
    from simulator.result import Result


@dataclass(frozen=True)
class Share:
    """What one replica did.

    Attributes:
        replica: Its number, from 1 on, in the order in which they were ready; None if it was ordered and never ready.
        requests: Handed to it; each try counts.
        output_tokens: That it emitted, for those it answered.
        busy: Share of the time it was there in which a step ran; None if it was not there.
        kv_usage_mean: Share of its KV cache that requests held or reserved, over that time; None without a bound.
        preemptions: How often a request lost its slot there.
        ordered_s, ready_s, stopped_s: From when on it was paid for, from when on it was there, and until when both,
            within the run.
    """

    replica: int | None
    requests: int
    output_tokens: int
    busy: float | None
    kv_usage_mean: float | None
    preemptions: int
    ordered_s: float
    ready_s: float | None
    stopped_s: float


def shares(result: Result) -> list[Share]:
    """Every replica that was ready, by number, then those that were ordered in vain; none without a router."""
    cluster = result.cluster
    if cluster is None:
        return []
    there = [_share(number, served, cluster.paid_for(life)[0])
             for number, (served, life) in enumerate(zip(result.served, cluster.served, strict=True), 1)]
    never = [cluster.paid_for(life) for life in cluster.lives if life.ready is None]
    return there + [Share(None, 0, 0, None, None, 0, since / 1e9, None, until / 1e9) for since, until in never]


def _share(number: int, served: Served, ordered: int) -> Share:
    record, free = served.record, served.kv_ledger.share("external", "cached", "free")
    stays = record.last_stays
    return Share(number, len(record.sent), int(served.setup.output[served.answered].sum()),
                 int(durations(record).sum()) / served.lasts if served.lasts else None,
                 None if free is None else 1 - free, len(stays) - np.unique(stays[:, 0]).size,
                 ordered / 1e9, served.there[0] / 1e9, served.there[1] / 1e9)


def gpu_seconds(result: Result) -> float:
    """Seconds of GPUs that are paid for: from the order of each replica until it stops, idle or not."""
    return result.scenario.tensor_parallel_size * sum(end - start for start, end in result.paid) / 1e9


def peak_replicas(result: Result) -> int:
    """The most replicas that were paid for at once."""
    change = sorted([(start, 1) for start, _ in result.paid] + [(end, -1) for _, end in result.paid])
    return int(np.cumsum([by for _, by in change]).max(initial=0))


def balance(result: Result) -> dict[str, Any]:
    """The figures of a summary that tell of the replicas, by their names there; None where there is no router."""
    found: dict[str, Any] = {"gpu_seconds": gpu_seconds(result), "shed": None, "peak_replicas": None,
                             "busiest_replica": None}
    if result.cluster is None:
        return found
    work = [int(durations(each.record).sum()) for each in result.served]
    mean = sum(work) / len(work)
    return found | {"shed": len(result.record.refused), "peak_replicas": peak_replicas(result),
                    "busiest_replica": max(work) / mean if mean else None}
