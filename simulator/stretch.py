"""Stretch: how often a step runs before its policy must be asked again. The only place that fast-forwards.

It takes no decision and prices nothing: what is repeated is the very step that the policy gave. It takes no memory
either: that is taken when the steps are over, for some of them may never run.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from simpy import Environment

from simulator.batch import DecodingSet
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.policies.own import is_own
from simulator.step import Step

LONGEST = 256
"""Steps that are foreseen where an event may come that nobody can know of."""
SPREAD = 2654435761
"""A prime near 2^32 over the golden ratio: multiples of it, cut to 32 bits, lie evenly spread (Knuth)."""


class Stretch:
    """The repetitions of one replica's steps.

    Args:
        env, policy, memory, decoding: Those of the replica.
        exact: Nothing is repeated that the policy does not ask for.
        alone: Nobody but clients makes events in this environment, so that its next event is known to be theirs. Where
            others do, a stretch is cut when somebody comes.
        watchful: Any event may change the plan, not only those that let somebody in.
    """

    def __init__(self, env: Environment, policy: Policy, memory: Memory, decoding: DecodingSet, *, exact: bool,
                 alone: bool, watchful: bool) -> None:
        self._env, self._memory, self._decoding = env, memory, decoding
        self._alone, self._watchful = alone, watchful
        self._fast = policy.is_steady() and not exact
        self._urgent = policy.urgency() is not None
        self._horizon: float = inf    # the next event that the latest step heeds, as far as one is known

    def at_most(self, step: Step, duration: int, now: int) -> int:
        """How often this step may run before the policy must be asked again, given how long it takes once."""
        self._horizon = self._env.peek() if self._alone and self.heeds(step) else inf
        if not step.decodes or not self._decoding.size:
            return step.times
        if step.times > 1:
            return min(step.times, self._decoding.steps_to_finish())
        if step.chunks or not self._fast or step.fickle or step.preempted or step.trimmed or step.delay:
            return 1
        steps = self._decoding.steps_to_finish()
        if not self._alone and self.heeds(step):
            return min(steps, LONGEST)
        if self._horizon < inf:
            steps = min(steps, int(self._horizon - now) // duration + 1)    # more would hardly be kept
        return steps

    def foreseen(self, step: Step, ends: list[int], used: list[int]) -> None:
        """Keep of the ends of all repetitions those that can be told to come, and say what memory is used in each."""
        if ends[-1] > self._horizon:
            cut(ends, self._horizon)
        if len(ends) > 1:
            more = len(ends) - 1
            used += self._memory.foresee(self._decoding, more) if step.decodes else used * more
            del ends[len(used):]

    def heeds(self, step: Step) -> bool:
        """Whether a client might hang up, or an arrival be let in: by urgency it may pass a head that does not fit."""
        return self._watchful or step.blocked is None or (step.blocked != "cap" and self._urgent)


class Probed(Stretch):
    """A stretch of somebody's own policy that says it is steady: it is asked once more in the middle of each.

    Its inspection compares the answers.
    """

    def at_most(self, step: Step, duration: int, now: int) -> int:
        """The same, cut at a place that looks random and is the same each time."""
        times = super().at_most(step, duration, now)
        if times < 3 or step.times > 1 or not step.decodes:
            return times
        return 1 + (self._decoding.turn * SPREAD % 2 ** 32) % (times - 1)


def stretch_for(env: Environment, policy: Policy, memory: Memory, decoding: DecodingSet, **options: bool) -> Stretch:
    """The stretches of a policy. Takes the arguments of Stretch."""
    kind = Probed if is_own(policy) else Stretch
    return kind(env, policy, memory, decoding, **options)


def cut(ends: list[int], event: float) -> None:
    """Keep the repetitions that start before an event."""
    del ends[bisect_left(ends, event) + 1:]
