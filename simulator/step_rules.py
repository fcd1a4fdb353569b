"""What the step of a policy of somebody's own may say: each rule, and the words for who breaks it. It runs nothing."""

from __future__ import annotations

from simulator.contract import Contract
from simulator.holders import Holders
from simulator.policies.base import Policy
from simulator.policies.own import named
from simulator.recorder import CODES
from simulator.request import Request
from simulator.step import Queue, Step

COUNTS = {"times": 1, "delay": 0, "spent": 0, "spent_context": 0, "pad_to": 0, "pad_chunks_to": 0}
"""Whole numbers that a step states, each with its least value."""
BUDGETS = ("max_num_batched_tokens", "max_num_tokens")
"""What engines call the most tokens of a step."""
MOST_TIMES = 1 << 20
"""How often one step may be repeated."""


def check_step(answer: object, queue: Queue, policy: Policy, holders: Holders, contract: Contract) -> None:
    """Raise PolicyError for an answer, a step or not, that cannot be run as it stands."""
    holders.check()
    if not isinstance(answer, Step):
        if holders.stopped:
            contract.complain(f"preempted {named(holders.stopped[0])}, and its plan returned {answer!r} in place of a "
                              "Step that lists it in its preempted")
        return
    _check_values(answer, queue, contract)
    _check_chunks(answer, queue, holders, contract)
    _check_preempted(answer, queue, holders, contract)
    _check_places(queue, contract)
    _check_bounds(answer, queue, policy, contract)


def _check_values(step: Step, queue: Queue, contract: Contract) -> None:
    """Each number and each word is one."""
    for name, least in COUNTS.items():
        value = getattr(step, name)
        if type(value) is not int or value < least:
            contract.complain(f"gave a step whose {name} is {value!r}: it must be a whole number of at least {least}")
    if step.times > (1 if step.chunks else MOST_TIMES):
        contract.complain(f"repeats a step {step.times:,} times: {MOST_TIMES:,} is the most, and 1 with chunks")
    if step.spent > len(queue.held):
        contract.complain(f"computes {step.spent} rows of finished requests, and {len(queue.held)} are held")
    if not isinstance(step.blocked, str | None) or step.blocked not in CODES:
        contract.complain(f"gave a step blocked by {step.blocked!r} (known: {', '.join(filter(None, CODES))})")
    for name in ("chunks", "preempted"):
        if not isinstance(getattr(step, name), list):
            contract.complain(f"gave a step whose {name} is {getattr(step, name)!r}: it must be a list")


def _check_chunks(step: Step, queue: Queue, holders: Holders, contract: Contract) -> None:
    """Every chunk is of another request, which runs, has room, and lacks so many tokens."""
    seen: set[Request] = set()
    for chunk in step.chunks:
        if not (isinstance(chunk, tuple | list) and len(chunk) == 2 and isinstance(chunk[0], Request)):
            contract.complain(f"gave a chunk {chunk!r}: it must be a pair of a request and tokens")
        request, tokens = chunk
        if request in seen:
            contract.complain(f"runs {named(request)} twice in one step")
        seen.add(request)
        if why := _cannot_run(request, queue):
            contract.complain(f"runs {named(request)}, which {why}")
        if type(tokens) is not int:
            contract.complain(f"planned a chunk of {tokens!r} tokens for {named(request)}: it must be an int")
        if not 1 <= tokens <= request.lacking:
            contract.complain(f"planned a chunk of {tokens} tokens for {named(request)}, which lacks {request.lacking}")
        if request not in holders:
            contract.complain(f"runs {named(request)} without room for it: ask memory.grow or memory.take first")


def _cannot_run(request: Request, queue: Queue) -> str | None:
    """Why a request computes no chunk now; None if it may."""
    order = request.order
    if order is None:
        return "waits: let it in first (queue.admit)" if request in queue.waiting else (
            "is swapped out: let it in first (queue.swap_in)" if request in queue.swapped else "is not here")
    if queue.running.get(order) is not request:
        return "has left"
    if order in queue.held:
        return "has finished"
    if order in queue.in_flight:
        return "is in a batch that has not returned"
    return None if order in queue.catching_up else "decodes: it takes part without a chunk"


def _check_preempted(step: Step, queue: Queue, holders: Holders, contract: Contract) -> None:
    """Whoever was sent back is listed, and does not run; and nobody else is."""
    for request in step.preempted:
        if request not in holders.stopped:
            contract.complain(f"lists {named(request)} as preempted, which it did not send back (queue.preempt)")
        if request.order is not None:
            contract.complain(f"preempted {named(request)} and let it in again in the same step")
    for request in holders.stopped:
        if request not in step.preempted:
            contract.complain(f"sent back {named(request)} and does not list it in the step's preempted")


def _check_places(queue: Queue, contract: Contract) -> None:
    """Everybody who runs is in one place."""
    places = {"decode": queue.decoding.size, "catch up": len(queue.catching_up), "are held": len(queue.held),
              "are in flight": len(queue.in_flight)}
    if sum(places.values()) != len(queue.running):
        told = ", ".join(f"{count} {word}" for word, count in places.items() if count)
        contract.complain(f"left {len(queue.running)} running, of whom {told or 'none does anything'}: use "
                          "the queue's own verbs")


def _check_bounds(step: Step, queue: Queue, policy: Policy, contract: Contract) -> None:
    """The policy's own cap and token budget."""
    if len(queue.running) > policy.slots:
        contract.complain(f"runs {len(queue.running)} requests, and its cap is {policy.slots}")
    tokens = sum(tokens for request, tokens in step.chunks if not (tokens == request.lacking == 1))
    for knob in BUDGETS:
        budget = getattr(policy, knob, None)
        if isinstance(budget, int) and tokens > budget:
            contract.complain(f"computes {tokens} prompt tokens in a step, and its {knob} is {budget}")
