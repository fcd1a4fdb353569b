"""Measured: what the record of a run comes to, each measure when it is asked for. It computes none of them itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.band import Band
from simulator.binned import BINS, Binned, by_steps, by_time, edges_of
from simulator.cluster import Cluster
from simulator.distribution import Distribution
from simulator.doors import Shut, shut
from simulator.errors import InputError, choose
from simulator.filling import filling_rate, sustained_slots
from simulator.fleet import Life
from simulator.frozen import Frozen, Kept, frozen
from simulator.fullness import BINS as FULLNESS_BINS
from simulator.fullness import Fullness
from simulator.gaps import spans_of, token_gaps
from simulator.gate import REFUSED, SHED
from simulator.ledger import LEDGERS, Ledger, together, token_ledger
from simulator.levels import token_levels
from simulator.limits import limits
from simulator.memory import UNLIMITED, Memory
from simulator.metrics import PER_REQUEST
from simulator.outcomes import Outcomes, outcomes
from simulator.policies import Policy
from simulator.record import Record
from simulator.scenario import Scenario
from simulator.scenarios import record
from simulator.served import Served
from simulator.setup import Setup
from simulator.slots import Gaps, Slots, count_slots, is_unlimited
from simulator.tail import Tail, ttft_tail
from simulator.tenancy import Tenant, met, tenants
from simulator.timeline import Timeline, departures, timeline
from simulator.waste import Waste, waste


@dataclass(frozen=True, eq=False)
class Measured(Kept):
    """What a scenario came to, and what happened on the way.

    Attributes:
        setup: The scenario, resolved.
        record: All that happened.
        band: What an error of the step times would do; None if the scenario asks for none, or nothing is stated.
        cluster: What router and replicas did, where there is a router; `record` has the records of all as one.
        alone: The same run with the requests of one tenant only, by tenant; empty unless the scenario asks for it.
    """

    setup: Setup
    record: Record
    band: Band | None = None
    cluster: Cluster | None = None
    alone: Mapping[str, Timeline] = field(default_factory=Frozen)

    @property
    def scenario(self) -> Scenario:
        """What was asked; `simulator.run` answers it with the same result again."""
        return self.setup.scenario

    @property
    def asked(self) -> dict[str, Any]:
        """The scenario as plain values, from which `simulator.read_scenario` brings it back."""
        return record(self.scenario, self.setup.files)

    @property
    def policy(self) -> Policy:
        """The policy with every knob filled in; the caller's own."""
        return self.setup.policy

    @property
    def memory(self) -> Memory:
        """An empty memory as the policy makes it: its capacity and block size. The caller's own."""
        return self.setup.policy.memory(self.setup.deployment, self.setup.output)

    @property
    def block_size(self) -> int:
        """Tokens in a block of memory."""
        return self.memory.block_size

    def has_finished(self, request: int) -> bool:
        """Whether the request of this row of the trace got its whole answer."""
        return bool((self.timeline.request == request).any())

    @cached_property
    def timeline(self) -> Timeline:
        """The instants of every finished request, in ns."""
        return timeline(self.setup, self.record)

    @property
    def felt(self) -> Timeline:
        """The same as their users felt it: who was sent several times has waited since the first try."""
        line = self.timeline
        return replace(line, sent=self.outcomes.asked[line.request]) if self.setup.patience.retries else line

    @cached_property
    def met(self) -> NDArray[np.bool_] | None:
        """Which of the requests answered meet their objectives, counted from their first try, by entry of the timeline;
        None without objectives.
        """
        return frozen(met(self.scenario, self.setup.trace, self.felt))

    @cached_property
    def tenants(self) -> tuple[Tenant, ...]:
        """How each tenant was served; none where the trace names none."""
        return tuple(tenants(self))

    @cached_property
    def outcomes(self) -> Outcomes:
        """How each request ended."""
        return outcomes(self.setup.verdict, self.setup.follows, self.record, self.timeline,
                        REFUSED if self.cluster is None else SHED)

    @cached_property
    def slots(self) -> Slots:
        """The denominator of slot utilisation, of one replica."""
        return count_slots(self.setup, self.memory, int(self.record.plan("running").max(initial=0)))

    @cached_property
    def served(self) -> tuple[Served, ...]:
        """What each replica did."""
        setup, record, shared = self.setup, self.record, (self.slots, self.memory)
        if self.cluster is None:
            return (Served(setup, record, record.bounds, *shared, self.timeline.request, self.timeline.left),)
        return tuple(Served(setup, each, there, *shared, *departures(setup, each))
                     for each, there in zip(self.cluster.records, self.cluster.there(), strict=True))

    @property
    def paid(self) -> list[tuple[int, int]]:
        """From when to when each replica is paid for, ns: also while it starts and while it is idle."""
        return [self.record.bounds] if self.cluster is None else self.cluster.paid()

    @property
    def only(self) -> Served:
        """What the only replica did. Raises InputError where there were several."""
        if len(self.served) > 1:
            raise InputError(f"this shows one replica, and {len(self.served)} ran: give replicas=1")
        return self.served[0]

    @property
    def gaps(self) -> Gaps:
        """The times in which the only replica runs no step."""
        return self.only.gaps

    @cached_property
    def slot_ledger(self) -> Ledger:
        """Where every slot-nanosecond went."""
        return together([each.slot_ledger for each in self.served])

    @cached_property
    def token_ledger(self) -> Ledger:
        """Where every computed token position went."""
        return token_ledger(self.record)

    @cached_property
    def kv_ledger(self) -> Ledger:
        """Where every token-nanosecond of KV cache went."""
        return together([each.kv_ledger for each in self.served])

    @property
    def ledgers(self) -> dict[str, Ledger]:
        """All ledgers by name: where slots, token positions and KV cache went."""
        return {"slots": self.slot_ledger, "tokens": self.token_ledger, "kv": self.kv_ledger}

    def ledger_over_time(self, name: str, bins: int = BINS) -> Binned:
        """One of the ledgers, cut into so many bins of time."""
        edges = edges_of(self.record, bins)
        ledger = self.ledgers[choose("ledger", name, LEDGERS)]
        if name == "tokens":
            records = [each.record for each in self.served]
            return by_steps(ledger, [token_levels(record) for record in records], records, edges)
        return by_time(ledger, [each.levels(name) for each in self.served], edges)

    @cached_property
    def waste(self) -> Waste:
        """Slot-seconds lost to idle slots beside those lost to padding."""
        return waste(self.record, self.slot_ledger)

    @cached_property
    def limits(self) -> Mapping[str, float] | None:
        """Why the queue stands still, as shares of the time in steps; see `limits.limits`."""
        return frozen(limits((each.record for each in self.served), self._door))

    @property
    def _door(self) -> Shut | None:
        """When nobody is let in; None where any number is."""
        limit = self.setup.most_outstanding
        if limit >= UNLIMITED:
            return None
        return shut(zip(self.served, [Life(0, 0)] if self.cluster is None else self.cluster.served, strict=True), limit)

    @cached_property
    def fullness(self) -> Fullness | None:
        """The batch over time; None if no step ran."""
        records = [each.record for each in self.served]
        return Fullness.of(records, edges_of(self.record, FULLNESS_BINS)) if len(self.record.ends) else None

    @cached_property
    def ttft_tail(self) -> Tail | None:
        """The slowest first tokens, and what held each of them up; None if nobody was answered."""
        return ttft_tail([each.record for each in self.served], self.timeline)

    @cached_property
    def filling_rate(self) -> float | None:
        """Requests a second that would keep all replicas busy that there may be, about; see `filling.filling_rate`."""
        hits = self.prefix_hits
        found = hits[0] / hits[1] if hits and hits[1] else 0.0
        slots = min(self._sustained_slots, self.setup.most_outstanding)
        rate = filling_rate(self.setup, slots, 1 - found)
        return None if rate is None else rate * self.scenario.most_replicas

    @property
    def _sustained_slots(self) -> int:
        """Slots of a replica that its memory keeps busy."""
        if is_unlimited(self.setup):
            return self.slots.count
        capacity = self.memory.capacity * self.memory.block_size
        return sustained_slots(self.slots.count, capacity, self.slot_ledger, self.kv_ledger)

    @property
    def kv_use(self) -> tuple[float | None, float | None]:
        """Mean over time and peak of the share of KV cache in use; None without a bound or a step."""
        free = self.kv_ledger.share("external", "cached", "free")
        if free is None:
            return None, None
        return 1 - free, int(self.record.used.max()) / self.memory.capacity

    @property
    def prefix_hits(self) -> tuple[int, int] | None:
        """Prompt tokens found at hand, and all of them, of those admitted; None if nothing is kept, or known alike."""
        caches = self.memory.empty is not None and self.setup.trace.knows_prefixes
        return (self.record.found, self.record.asked) if caches else None

    @cached_property
    def _gaps_between_tokens(self) -> Distribution:
        if not self.timeline.streams:
            return Distribution(np.zeros(0, np.int64))
        return token_gaps(self.record, spans_of(self.record, self.timeline.request))

    def latency(self, name: str) -> Distribution:
        """All values of a latency metric, in ns."""
        return self._gaps_between_tokens if name == "itl" else Distribution.of(PER_REQUEST[name](self.timeline))
