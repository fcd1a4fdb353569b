"""Serving: what a setup asks for behind the client's door: one replica, or a router and its replicas.

It wires them, and says afterwards what they did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from simpy import Environment

from simulator.autoscaler import Autoscaler
from simulator.clients import Server
from simulator.cluster import cluster
from simulator.errors import InputError
from simulator.events import Watcher
from simulator.fleet import Fleet
from simulator.overflow import line_for
from simulator.pipeline import replica_for
from simulator.policies.own import memory_of
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.result import Result
from simulator.router import Router
from simulator.routing import ROUTERS, Sight
from simulator.routing.candidates import members
from simulator.setup import Setup
from simulator.slots import count_slots
from simulator.traffic import NS, sessions_of
from simulator.weighed import Weighed

Ear = Callable[[Request], None]
"""Hears of a request."""
ROUTING = 3
"""Stream of chance of the router."""


class Serving:
    """The replicas of a setup, and the door to them.

    Args:
        env: The SimPy environment.
        setup: What is asked for.
        on_finish, on_refuse, on_cancel: As those of a replica.
        watch: Hears of every step, of all replicas.

    Attributes:
        door: Where the client sends its requests.
        replicas: All that ever were ready.
        settings: The policy's knobs as they stood before anything ran, in words.
    """

    def __init__(self, env: Environment, setup: Setup, on_finish: Ear, on_refuse: Ear, on_cancel: Ear | None,
                 watch: Watcher | None = None) -> None:
        self._env, self._setup, self._watch = env, setup, watch
        self._ears = (on_finish, on_refuse, on_cancel)
        self._outputs = setup.output.data
        self._router: Router | None = None
        self.settings = {knob: repr(value) for knob, value in setup.policy.settings().items()}
        self.door: Server
        if setup.scenario.behind_router:
            self.door = self._routed()
        else:
            alone = self._replica(0, on_finish=on_finish, on_refuse=on_refuse, on_cancel=on_cancel)
            self.door, self.replicas = alone, [alone]

    @property
    def waiting_outside(self) -> int:
        """Requests that wait at the router."""
        return 0 if self._router is None else self._router.waiting

    def result(self) -> Result:
        """What came of it."""
        setup, records = self._setup, [replica.record.freeze() for replica in self.replicas]
        if self._router is None:
            return Result(setup, records[0])
        found = cluster(records, self._fleet.lives, self._router.record, len(setup.output))
        return Result(setup, found.whole, cluster=found)

    def _routed(self) -> Router:
        """The door of a fleet that is ready."""
        setup, scenario = self._setup, self._setup.scenario
        self._fleet = fleet = Fleet(self._env, self._member, setup.most_outstanding,
                                    round(scenario.startup_delay * NS), lambda: router.serve_line())
        rule = ROUTERS[scenario.router](Sight(fleet.candidates, self._kv_needed, self._waiting,
                                              sessions_of(setup.trace),
                                              np.random.default_rng([scenario.seed, ROUTING])))
        self._router = router = Router(self._env, fleet, rule, line_for(scenario.overflow, setup.trace.tenant),
                                       *self._ears)
        self.replicas = fleet.replicas
        fleet.begin(scenario.replicas)
        if scenario.autoscale is not None:
            router.autoscaler = self._autoscaler(router, scenario.autoscale)
        return router

    def _autoscaler(self, router: Router, rule: str) -> Autoscaler:
        measure, _, target = rule.partition(":")
        scenario, each = self._setup.scenario, float(target)
        load: Callable[[], int] = partial(getattr, router, "outstanding")
        if measure == "utilization":
            load, each = self._running, each * self._slots()
        assert scenario.max_replicas is not None
        return Autoscaler(self._env, self._fleet, load, each, scenario.min_replicas, scenario.max_replicas,
                          round(scenario.cooldown * NS))

    def _slots(self) -> int:
        """The slots of one replica, as far as they are known before anything has run."""
        found = count_slots(self._setup, self._setup.policy.memory(self._setup.deployment, self._setup.output), 0).count
        if not found:
            raise InputError("autoscale utilization:X needs to know how many requests may run: cap them, bound the KV "
                             "cache, or take queue:N")
        return found

    def _running(self) -> int:
        """Requests that hold a slot, at the replicas that take requests."""
        return sum(len(self.replicas[number].queue.running) for number in members(self._fleet.candidates.serving))

    def _waiting(self, number: int) -> int:
        """Requests that wait at a replica."""
        return len(self.replicas[number].queue.waiting)

    def _kv_needed(self, number: int) -> int:
        """Blocks of KV cache in use at a replica, and those that the prompts waiting there will take."""
        replica = self.replicas[number]
        waiting = replica.queue.waiting
        assert isinstance(waiting, Weighed)
        return replica.kv_used + waiting.weight

    def _member(self, number: int) -> Replica:
        assert self._router is not None
        replica = self._replica(number, rank=number, **self._router.ears(number))
        if self._setup.scenario.router == "least-kv":
            blocks_for = replica.memory.blocks_for
            replica.queue.waiting = Weighed(replica.queue.waiting, lambda request: blocks_for(request.prompt))
        return replica

    def _replica(self, number: int, **options: Any) -> Replica:
        """A replica of this setup; each draws its own noise and has its own copy of the policy."""
        setup = self._setup
        policy, noise = replace(setup.policy), setup.noise and setup.noise(number)
        return replica_for(self._env, policy, memory_of(policy, setup.deployment, setup.output),
                           Pricing(setup.cost, noise, setup.scheduling), self._outputs,
                           exact=setup.scenario.exact, watch=self._watch, **options)
