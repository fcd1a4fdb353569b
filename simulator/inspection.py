"""Inspection: each answer of a policy of somebody's own is looked at before it is run.

Bundled policies are not inspected, and so cost nothing here: the tests look at theirs. What a step may say is in
`step_rules`, and who may hold memory in `holders`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.contract import Contract
from simulator.errors import PolicyError
from simulator.holders import Holders
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.policies.own import answering, is_own, named
from simulator.progress import Progress
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.step import Queue, Step, Wait
from simulator.step_rules import check_step


class Inspected:
    """A policy of somebody's own, asked by a replica. Raises PolicyError for what it may not do or say.

    Args:
        policy, queue, memory, record, contract, progress: Those of the replica.
    """

    def __init__(self, policy: Policy, queue: Queue, memory: Memory, record: Recorder, contract: Contract,
                 progress: Progress) -> None:
        self._policy, self._queue, self._memory, self._record = policy, queue, memory, record
        self._contract, self._progress, self._holders = contract, progress, Holders(queue, memory, contract)
        self._promise: tuple[object, object] | None = None    # how things stood, and the step until they change
        self._shut: tuple[int, ...] | None = None    # who had left when it said that until more do nobody enters
        self._urgent = policy.urgency() is not None

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        """See Policy."""
        here, ran, promised = len(queue), len(queue.running), self._promised()
        self._holders.begin()
        answer = self._ask("plan", self._policy.plan, queue, memory, now)
        if len(queue) != here:
            self._contract.complain(f"was lent {here} requests and gives back {len(queue)}: plan may move them, and "
                                    "neither drop nor double any")
        check_step(answer, queue, self._policy, self._holders, self._contract)
        if self._policy.is_steady():
            self._keep_shut(answer, len(queue.running) > ran)
            self._keep_word(answer, promised)
        if isinstance(answer, Step) and (answer.chunks or (answer.decodes and queue.decoding.size)):
            self._progress.planned()
        return answer

    def idle(self, queue: Queue, memory: Memory, now: int) -> Wait | None:
        """See Policy."""
        answer = self._ask("idle", self._policy.idle, queue, memory, now)
        if isinstance(answer, Step):
            self._contract.complain("gives a step although nobody is there (idle)")
        return answer

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        """See Policy."""
        held = dict(queue.held)
        answer = self._ask("leaving", self._policy.leaving, finished, queue)
        if not isinstance(answer, list | tuple):
            self._contract.complain(f"leaving must return a list of requests, not {answer!r}")
        for request in answer:
            if not isinstance(request, Request) or held.pop(request.order, None) is not request:    # type: ignore[arg-type]
                self._contract.complain(f"lets go {named(request)}, which has not finished, or has left before")
        return list(answer)

    def dropped(self, request: Request) -> None:
        """See Policy."""
        self._ask("dropped", self._policy.dropped, request)

    def _ask(self, verb: str, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except PolicyError:
            raise
        except Exception as error:
            self._contract.accuse(error, f"its {verb} raised an error")

    def _standing(self) -> tuple[int, ...]:
        """What must change before a steady policy may change its mind, but for a full memory."""
        queue, record = self._queue, self._record
        return (queue.decoding.size, len(queue), len(queue.waiting), len(queue.held), len(queue.catching_up),
                queue.closed, len(record.sent), len(record.cancelled), len(record.stays))

    def _promised(self) -> object | None:
        """The step that a steady policy must give now; None if it may give any."""
        promise, self._promise = self._promise, None
        full = self._memory.free < self._queue.decoding.demand
        return None if promise is None or full or promise[0] != self._standing() else promise[1]

    def _keep_shut(self, answer: object, grown: bool) -> None:
        """A steady policy that says that the head stays out until somebody leaves lets nobody in before."""
        shut, self._shut = self._shut, None
        left = len(self._record.stays), len(self._record.cancelled)
        if shut == left and grown and not self._holders.stopped:
            self._contract.complain("said that the head of the queue is blocked until somebody leaves, and lets one in")
        if isinstance(answer, Step) and _said(answer) and answer.blocked:
            self._shut = left if answer.blocked == "cap" or not self._urgent else None

    def _keep_word(self, answer: object, promised: object | None) -> None:
        """Compare the answer with the one that was promised, and note what it promises."""
        said = _said(answer)
        if promised is not None and said != promised:
            self._contract.complain("says that it is steady, and changes its mind while everybody only decodes: set "
                                    "steady = False")
        if said is not None:
            self._promise = self._standing(), said


def _said(answer: object) -> object | None:
    """What a steady policy will say again until something happens; None where it may say anything next."""
    if not isinstance(answer, Step) or not answer.decodes or answer.times > 1:
        return None
    passing = answer.chunks or answer.preempted or answer.trimmed or answer.fickle or answer.delay
    return None if passing else (answer.blocked, answer.spent)


def inspected(policy: Policy, *parts: Any) -> Policy | Inspected:
    """Who is asked in a policy's place: the policy itself if it is one of ours. Takes the arguments of Inspected."""
    return Inspected(policy, *parts) if is_own(policy) else policy


def inspected_urgency(policy: Policy) -> Callable[[Request], Any] | None:
    """The key by which the queue is kept. That of somebody's own policy is looked at: its values must have an order."""
    with answering(policy, "urgency"):
        key = policy.urgency()
    if key is None or not is_own(policy):
        return key
    known: list[Any] = []

    def looked_at(request: Request) -> Any:
        with answering(policy, f"urgency of request {request.index}"):
            value = key(request)
            known[:] = known or [value]
            if not (value <= known[0] or value >= known[0]):
                raise PolicyError(f"{policy.name}: its urgency of request {request.index} is {value!r}, which has no "
                                  f"order with {known[0]!r}")
        return value

    return looked_at
