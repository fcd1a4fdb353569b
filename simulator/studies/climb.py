"""Climb: the runs between two policies. It says what to run and by which flags, and runs nothing.

A corner is a set of switches that are thrown. At the two ends stand the policies themselves, in between `hybrid`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from simulator.errors import InputError
from simulator.policies import Hybrid, Policy
from simulator.scenario import Scenario
from simulator.setup import prepare, scheduling
from simulator.studies.shapley import Set
from simulator.studies.switches import as_hybrid, between, capped, corrected, flags_of, switches_between
from simulator.traffic import as_read

NATURAL = "in the natural order"


class Climb:
    """All corners between two policies in one scenario.

    Attributes:
        names: Of the two policies.
        switches: In which they differ once the start is rid of its artefacts, in the natural order.
        stages: The start as it is, then without each of its artefacts: key, words, policy. The last is the foot.
        end: The `hybrid` at the end.
    """

    def __init__(self, scenario: Scenario, start: Policy, end: Policy) -> None:
        self._scenario, self._ends = scenario, (start, end)
        self.names = start.name, end.name
        first, self.end = as_hybrid(start), as_hybrid(end)
        self.stages = [("", "", first), *corrected(first, self.end)]
        self._overheads = [_overhead(scenario, policy.name) for policy in (start, end)]
        self.switches = switches_between(self.foot, self.end, self._overheads[0] != self._overheads[1])
        if not self.switches:
            raise InputError(f"{start.name} and {end.name} differ in no switch: change a knob of one of them")

    def read(self) -> Climb:
        """The same climb with its trace at hand for all runs."""
        return Climb(as_read(self._scenario), *self._ends)

    @property
    def foot(self) -> Hybrid:
        """The start without its artefacts."""
        return self.stages[-1][2]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the switches."""
        return tuple(switch.key for switch in self.switches)

    def orders(self) -> Mapping[str, tuple[str, ...]]:
        """In words, the natural order and another one: padding first, or else from behind."""
        keys = self.keys
        if len(keys) == 1:
            return {NATURAL: keys}
        if "padding" in keys[1:]:
            return {NATURAL: keys, "with padding first": ("padding", *(key for key in keys if key != "padding"))}
        return {NATURAL: keys, "from behind": keys[::-1]}

    def policy(self, thrown: Iterable[str]) -> Hybrid:
        """The foot with these switches thrown."""
        keys = set(thrown)
        policy = between(self.foot, [switch for switch in self.switches if switch.key in keys])
        owner = self.end if "cap" in keys else self.foot
        # Under another memory rule the owner's knob means another cap: it is another one, or has another default.
        return policy if policy.reserve == owner.reserve else capped(policy, self._slots["cap" in keys])

    @cached_property
    def _slots(self) -> tuple[int, ...]:
        """The caps of both policies as they come out in this scenario."""
        return tuple(prepare(self._scenario.but(policy=policy)).policy.slots for policy in self._ends)

    def flags(self, thrown: Set) -> str:
        """What makes `batchsim run --policy hybrid` the run of this corner; equal runs have equal flags."""
        return self._flags(self.policy(thrown), "engine" in thrown)

    def stage_flags(self, stage: int) -> str:
        """The same for the start without so many of its artefacts."""
        return self._flags(self.stages[stage][2], False)

    def _flags(self, policy: Hybrid, other_engine: bool) -> str:
        constant, each = self._overheads[other_engine]
        host = f"--scheduler-overhead {policy.name}:{constant:g},{each:g}" if constant or each else ""
        return " ".join(filter(None, (flags_of(policy), host)))

    def scenario(self, thrown: Set) -> Scenario:
        """The run of this corner."""
        if not thrown and len(self.stages) == 1:
            return self._scenario.but(policy=self._ends[0])
        if len(thrown) == len(self.switches):
            return self._scenario.but(policy=self._ends[1])
        return self._with(self.policy(thrown), "engine" in thrown)

    def stage(self, stage: int) -> Scenario:
        """The run of the start without so many of its artefacts."""
        return self._scenario.but(policy=self._ends[0]) if not stage else self._with(self.stages[stage][2], False)

    def runs(self, corners: Iterable[Set]) -> dict[str, Scenario]:
        """The runs of these corners and of the start with its artefacts, by their flags, each once."""
        stages = {self.stage_flags(stage): self.stage(stage) for stage in range(len(self.stages) - 1)}
        ordered = sorted(corners, key=lambda corner: (len(corner), sorted(corner)))
        return stages | {self.flags(corner): self.scenario(corner) for corner in ordered}

    def _with(self, policy: Hybrid, other_engine: bool) -> Scenario:
        overhead = self._overheads[other_engine]
        return self._scenario.but(policy=policy, scheduler_overhead={policy.name: overhead} if any(overhead) else {})


def _overhead(scenario: Scenario, policy: str) -> tuple[float, float]:
    """What the scheduler of this policy adds to a step, in ms."""
    constant, each = scheduling(scenario, policy)
    return constant / 1e6, each / 1e6
