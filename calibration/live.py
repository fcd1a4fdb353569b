"""The replica's own loop with a wall clock in place of a cost model: each step runs for real and lasts as it lasts.

It is the very Replica of a simulation, in exact mode, over the same policy, queue and memory. The time that the policy
itself takes is not counted, here as in a simulation.
"""

from __future__ import annotations

from typing import Any

from simpy import Environment

from calibration.engine import Engine
from calibration.timing import timed
from cost_models import CostModel, StepShape
from simulator.clients import Client
from simulator.memory.base import UNLIMITED
from simulator.passes import Pass, Passes
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.sending import sending
from simulator.setup import prepare
from simulator.step import Step


class Stopwatch(CostModel):
    """Answers with what was measured last, whatever it is asked."""

    def __init__(self) -> None:
        self.measured = 1

    @property
    def name(self) -> str:
        return "stopwatch"

    @property
    def origin(self) -> str:
        return "measured while it ran"

    def time(self, shape: StepShape) -> int:
        return self.measured


class LivePasses(Passes):
    """Passes that an engine carries out while they are priced. Their cost model is a Stopwatch."""

    engine: Engine

    def begin(self, step: Step, now: int) -> Pass:
        stopwatch = self._pricing.cost
        assert isinstance(stopwatch, Stopwatch)
        stopwatch.measured = timed(lambda: self.engine.execute(step, self._queue), self.engine.model.device)
        return super().begin(step, now)


class LiveReplica(Replica):
    """A replica whose steps an engine carries out."""

    def __init__(self, env: Environment, engine: Engine, *args: object, **options: object) -> None:
        self._engine = engine
        super().__init__(env, *args, exact=True, **options)    # type: ignore[arg-type]

    def _make_passes(self, *parts: Any) -> Passes:
        passes = LivePasses(*parts)
        passes.engine = self._engine
        return passes


def run_live(scenario: Scenario, engine: Engine) -> Result:
    """Answer a scenario by running it: its cost model must be a Stopwatch."""
    setup, stopwatch = prepare(scenario), scenario.cost_model
    assert isinstance(stopwatch, Stopwatch)
    env = Environment(initial_time=0)
    requests, conversations = sending(setup)
    client = Client(env, requests, scenario.max_concurrency or UNLIMITED, conversations=conversations)

    def finished(request: Request) -> None:
        engine.release(request)
        client.finished(request)

    replica = LiveReplica(env, engine, setup.policy, setup.policy.memory(setup.deployment, setup.output),
                          Pricing(stopwatch), setup.output.tolist(), on_finish=finished)
    client.send_to(replica)
    env.run()
    return Result(setup, replica.record.freeze())
