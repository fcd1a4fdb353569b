"""Hearing: a run through `simulate.run` of which everything is noted from outside: its door, and every step it takes.

`heard(scenario)` gives the result, what client and door told each other, and a `World` for each replica, of which all
that `invariants.REPLICA` asks can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from simpy import Environment
from worlds import World, listen

from simulator import serving
from simulator.memory import UNLIMITED
from simulator.prefixes import prefixes
from simulator.replica import Replica
from simulator.request import Request
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.serving import Serving
from simulator.setup import Setup
from simulator.simulation import run

MOST_PLANS = 10_000
"""Of one replica; after so many a world is taken for one that never ends."""


@dataclass
class Heard:
    """A run, as it was heard.

    Attributes:
        events: (ns, what, row of the trace) as they happened; what is "sent", "refused", "gone" (its client had hung
            up) or "answered" (it gave up its slot).
        worlds: What each replica did, by its number.
        result: What came of it.
    """

    events: list[tuple[int, str, int]] = field(default_factory=list)
    worlds: list[World] = field(default_factory=list)
    result: Result = None    # type: ignore[assignment]


def heard(scenario: Scenario, found: Heard | None = None) -> Heard:
    """Run a scenario and listen. What is heard of a run that fails is in `found`."""
    found = Heard() if found is None else found
    with _listening(found):
        found.result = run(scenario)
    return found


@contextmanager
def _listening(found: Heard) -> Iterator[None]:
    """Whoever serves from now on is heard; of several runs, as a band or tenants alone ask for, the first."""
    class Listening(Serving):
        def __init__(self, env: Environment, setup: Setup, on_finish: Any, on_refuse: Any, on_cancel: Any,
                     watch: Any = None) -> None:
            self.told = not found.events and not found.worlds
            if self.told:
                note = _notes(found, env)
                on_finish, on_refuse = note("answered", on_finish), note("refused", on_refuse)
                on_cancel = note("gone", on_cancel) if on_cancel else None
            super().__init__(env, setup, on_finish, on_refuse, on_cancel, watch)
            if self.told:
                self.door = _Door(self.door, note("sent", self.door.submit))

        def _replica(self, number: int, **options: Any) -> Replica:
            if not self.told:
                return super()._replica(number, **options)
            with patch.object(serving, "replica_for", _replica_for(found, self._setup)):
                return super()._replica(number, **options)

    with patch.dict(run.__globals__, Serving=Listening):    # the module hides behind the function of its name
        yield


def _notes(found: Heard, env: Environment) -> Callable[[str, Any], Any]:
    def note(what: str, ear: Any) -> Any:
        def told(request: Request) -> None:
            found.events.append((env.now, what, request.index))    # type: ignore[arg-type]
            ear(request)
        return told
    return note


class _Door:
    """A server whose first word is heard."""

    def __init__(self, server: Any, submit: Any) -> None:
        self._server, self.submit = server, submit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


def _replica_for(found: Heard, setup: Setup) -> Callable[..., Replica]:
    """Makes a replica that is heard."""
    columns = (setup.trace.arrival, setup.prompt, setup.output, setup.max_tokens)
    rows = [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    if setup.turns_wait:    # a turn may come before its own time
        rows = [(0, *row[1:]) for row in rows]

    def make(env: Environment, policy: Any, memory: Any, pricing: Any, outputs: Any, *, exact: bool, watch: Any,
             on_refuse: Any = None, **options: Any) -> Replica:
        world = World(rows, policy, memory, exact, pricing.cost, UNLIMITED, None, None,    # type: ignore[arg-type]
                      prefixes(setup.trace) or [()] * len(rows), most_plans=MOST_PLANS)
        found.worlds.append(world)
        return listen(world, env, True, policy, memory, pricing, outputs, exact=exact,
                      on_refuse=on_refuse, **options)

    return make
