"""Serving: what a setup asks for behind the client's door: one replica, or a router and its replicas.

It wires them, and says afterwards what they did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from simpy import Environment

from simulator.clients import Server
from simulator.events import Watcher
from simulator.fleet import Fleet
from simulator.merged import merged
from simulator.pipeline import replica_for
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.result import Result
from simulator.router import Router
from simulator.routing import ROUTERS, Sight
from simulator.setup import Setup

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
        replicas: All of them.
    """

    def __init__(self, env: Environment, setup: Setup, on_finish: Ear, on_refuse: Ear, on_cancel: Ear | None,
                 watch: Watcher | None = None) -> None:
        self._env, self._setup, self._watch = env, setup, watch
        self._outputs = setup.output.data
        self.door: Server
        if setup.scenario.behind_router:
            self._fleet = Fleet(self._member, setup.policy.max_outstanding)
            rule = ROUTERS[setup.scenario.router](Sight(
                self._fleet.candidates, self._fleet.replicas, (),
                np.random.default_rng([setup.scenario.seed, ROUTING])))
            self._router = self.door = Router(env, self._fleet, rule, on_finish, on_refuse, on_cancel)
            self.replicas = self._fleet.replicas
            self._fleet.start(setup.scenario.replicas)
        else:
            alone = self._replica(0, on_finish=on_finish, on_refuse=on_refuse, on_cancel=on_cancel)
            self.door, self.replicas = alone, [alone]

    def result(self) -> Result:
        """What came of it, once the clock has stopped."""
        records = [replica.record.freeze() for replica in self.replicas]
        if not self._setup.scenario.behind_router:
            return Result(self._setup, records[0])
        return Result(self._setup, merged(records, self._router.record, len(self._setup.output)), None, tuple(records))

    def _member(self, number: int) -> Replica:
        return self._replica(number, **self._router.ears(number))

    def _replica(self, number: int, **ears: Any) -> Replica:
        """A replica of this setup; each draws its own noise and has its own copy of the policy."""
        setup = self._setup
        policy, noise = replace(setup.policy), setup.noise and setup.noise(number)
        return replica_for(self._env, policy, policy.memory(setup.deployment, setup.output),
                           Pricing(setup.cost, noise, setup.scheduling), self._outputs,
                           exact=setup.scenario.exact, watch=self._watch, **ears)
