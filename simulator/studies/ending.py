"""Ending: what happened at the end of one short sequence inside a batch, read from the step log and told in words.

It knows the record of a run and nothing of the policy's code: a different log tells a different story.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.counting import counted
from simulator.record import Record
from simulator.result import Result


@dataclass(frozen=True)
class Ending:
    """The last moments of one request in one run. Steps count from 0, times are seconds.

    Attributes:
        request: Its index in the trace.
        prompt, output: Its tokens.
        companions: Other requests in a slot when it got its own.
        admitted_step, admitted_s: When it got its slot.
        last_step, last_s: The step that emitted its last token, and that step's end.
        left_step, left_s: The last step before its slot was free, and when that was.
        idle_steps, idle_s: How long its slot stayed taken after its last token.
        kv_tokens: Tokens of KV it held then.
        kv_taken: Tokens of memory that were set aside for it then, used or not.
        longest, longest_output: The request for which it had to wait, if it had to.
        successor: Who was admitted next, if anybody was.
        successor_step: The step in which the successor began.
        waiting: Requests in the queue when the slot became free.
    """

    request: int
    prompt: int
    output: int
    companions: int
    admitted_step: int
    admitted_s: float
    last_step: int
    last_s: float
    left_step: int
    left_s: float
    idle_steps: int
    idle_s: float
    kv_tokens: int
    kv_taken: int
    longest: int | None
    longest_output: int | None
    successor: int | None
    successor_step: int | None
    waiting: int


def short_request(result: Result) -> int | None:
    """The request with the fewest output tokens among those that got the first slots together, if anybody did."""
    stays = result.record.stays
    if not len(stays):
        return None
    first = stays[stays[:, 1] == stays[:, 1].min(), 0]
    outputs = result.setup.output[first]
    return int(first[np.lexsort((first, outputs))[0]])


def ending(result: Result, request: int) -> Ending:
    """How `request` ended in this run. It must have finished there."""
    record, setup = result.record, result.setup
    stay = record.stays[record.stays[:, 0] == request][-1]
    admitted, left = int(stay[1]), int(stay[2])
    last_step = int(record.spans[record.spans[:, 0] == request][-1, 2])
    left_step = int(np.searchsorted(record.ends, left))
    last_ns = int(record.ends[last_step])
    prompt, output = int(setup.prompt[request]), int(setup.output[request])
    longest = _longest_companion(record, request, left) if left > last_ns else None
    successor, successor_step = _successor(record, request, left)
    kv_tokens = prompt + output - 1
    return Ending(
        request, prompt, output, _companions(record, request, admitted), _step_at(record, admitted), admitted / 1e9,
        last_step, last_ns / 1e9, left_step, left / 1e9, left_step - last_step, (left - last_ns) / 1e9,
        kv_tokens, int(setup.footprint[request]), longest,
        None if longest is None else int(setup.output[longest]), successor, successor_step,
        _waiting(record, left))


def _step_at(record: Record, instant: int) -> int:
    """The first step that starts at `instant` or later."""
    return int(np.searchsorted(record.starts, instant))


def _companions(record: Record, request: int, instant: int) -> int:
    others = record.stays[record.stays[:, 0] != request]
    return len(np.unique(others[(others[:, 1] <= instant) & (others[:, 2] > instant), 0]))


def _longest_companion(record: Record, request: int, left: int) -> int | None:
    """Whose last token came with the step after which `request` could leave."""
    last_step = int(np.searchsorted(record.ends, left))
    beside = record.spans[(record.spans[:, 2] == last_step) & (record.spans[:, 0] != request), 0]
    return int(beside.min()) if len(beside) else None


def _successor(record: Record, request: int, left: int) -> tuple[int | None, int | None]:
    """Who took the slot: those who left at one instant are followed, in order, by those admitted next."""
    leavers = record.stays[record.stays[:, 2] == left, 0]
    rank = int(np.flatnonzero(leavers == request)[-1])
    later = record.stays[record.stays[:, 1] >= left]
    later = later[np.lexsort((later[:, 0], later[:, 1]))]
    if rank >= len(later):
        return None, None
    return int(later[rank, 0]), _step_at(record, int(later[rank, 1]))


def _waiting(record: Record, instant: int) -> int:
    """Requests in the queue at `instant`, before anybody is admitted at it."""
    sent = int((record.sent[:, 1] <= instant).sum())
    first_admission: dict[int, int] = {}
    for index, since, _ in record.stays.tolist():
        first_admission[index] = min(since, first_admission.get(index, since))
    return sent - sum(since < instant for since in first_admission.values())


def tell(result: Result, request: int) -> str:
    """The story of `request` in this run, in plain words with its numbers."""
    end = ending(result, request)
    told = [f"Request {end.request} (prompt {counted(end.prompt, 'token')}, answer {counted(end.output, 'token')}) "
            f"got a slot at step {end.admitted_step} ({end.admitted_s:.3f} s), {_others(end.companions)} beside it.",
            f"It emitted its last token at step {end.last_step} ({end.last_s:.3f} s)."]
    told += _held(end) if end.idle_steps else _evicted(end)
    return " ".join(told)


def _held(end: Ending) -> list[str]:
    """It had to stay: why, how long, and what it kept meanwhile."""
    because = "the batch ran on"
    if end.longest is not None:
        because = f"request {end.longest} needed {counted(end.longest_output or 0, 'token')}"
    told = [f"Its slot was not free then: {because}, until step {end.left_step} ({end.left_s:.3f} s).",
            f"For {counted(end.idle_steps, 'step')} and {end.idle_s:.3f} s the slot stayed idle, holding "
            f"{counted(end.kv_tokens, 'token')} of KV in {counted(end.kv_taken, 'token')} of memory set aside for it"
            + (f", while {counted(end.waiting, 'request')} stood in the queue." if end.waiting else "."),
            "Its answer returned only then, with the whole batch."]
    if end.successor is not None:
        told.append(f"Request {end.successor} took a slot at step {end.successor_step}, in the next batch.")
    return told


def _evicted(end: Ending) -> list[str]:
    """It could go at once: what became free, and who came."""
    told = [f"It left the batch with that step: its slot and {counted(end.kv_taken, 'token')} of KV memory were free "
            "at once."]
    if end.successor is None:
        told.append("Nobody was waiting, so the slot stayed empty.")
    elif end.successor_step == end.last_step + 1:
        told.append(f"Request {end.successor} took the slot in the very next step, {end.successor_step}.")
    else:
        told.append(f"The next to be admitted was request {end.successor}, at step {end.successor_step}.")
    return told


def _others(number: int) -> str:
    return "nobody" if number == 0 else "one other" if number == 1 else f"{number:,} others"
