"""Retraction: who is sent back to the queue when the next decode step does not fit. Mirrors: SGLang 0.5.23, by length.

A request that goes loses its memory, except what the tree has of it; it puts nothing new there. It keeps the tokens it
has generated and computes their KV again when it comes back, from the tail of the queue.
"""

from __future__ import annotations

from simulator.memory.base import Memory
from simulator.policies.sglang.ratio import RETRACT_STEPS
from simulator.request import Request
from simulator.step import Queue, Step


def victims(queue: Queue) -> list[Request]:
    """Those who decode, who goes first last: fewest generated tokens, then the longest prompt, then the latest."""
    ranked = sorted(queue.decoders(), key=lambda each: (each[1], -each[0].prompt), reverse=True)
    return [request for request, _ in ranked]


def retract(queue: Queue, memory: Memory, step: Step) -> list[Request]:
    """Send back one, and more until one token each fits; returns those who stay.

    One stays that fits alone. It always does, unless a prompt in the middle of its chunks takes the room.
    """
    staying = victims(queue)
    fits = False
    while not fits:
        send_back(staying.pop(), queue, memory, step)
        memory.evict(len(staying) * RETRACT_STEPS // memory.block_size)
        fits = memory.take(queue.decoding, ())    # nobody always does
    return staying


def send_back(request: Request, queue: Queue, memory: Memory, step: Step) -> None:
    """One who decoded waits again, behind all others."""
    step.drop(queue.preempt(request, memory, to_tail=True))
