"""The loop where prompts are computed whole: a prefill runs alone while the others wait, and a decode always follows.

A batch is let in if it is large enough, next to those running, to be worth stopping them for, or if the last one is
long ago. Mirrors: text-generation-inference, commit db931fcf, backends/v3, without chunking; so do devices that pad.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

import numpy as np

from simulator.memory.base import Memory
from simulator.policies.tgi.batching import Bounds, next_batch, room_left
from simulator.step import Queue, Step

if TYPE_CHECKING:
    from simulator.policies.tgi.policy import Tgi


class WholePrompts:
    """The loop, and where it stands."""

    def __init__(self, knobs: Tgi) -> None:
        self.knobs = knobs
        self._must_decode = False
        self._since = 0    # turn of the decoding set at the latest prefill

    def plan(self, queue: Queue, memory: Memory) -> Step | None:
        """A prefill of those who are let in, or a decode of the others; None if there is nobody."""
        fresh = not queue.running
        if self._must_decode and not fresh:
            step = Step(fickle=bool(queue.waiting))
        else:
            step = self._prefill(queue, memory, 0 if fresh else self.least(queue))
        self._must_decode = bool(step.chunks) and not fresh
        if self.knobs.requires_padding and queue.running:
            step.pad_to = _widest(step, queue)
        return step if queue.running else None

    def least(self, queue: Queue) -> int:
        """Fewest requests that are worth a prefill; in single precision, as the engine reckons."""
        waited = 1 + queue.decoding.turn - self._since    # the prefill counts as the first
        if waited >= self.knobs.max_waiting_tokens:
            return 0
        return floor(np.float32(len(queue.running)) * np.float32(self.knobs.waiting_served_ratio))

    def _prefill(self, queue: Queue, memory: Memory, least: int) -> Step:
        """Let in who fits; if that is nobody, the others decode."""
        knobs = self.knobs
        batch = next_batch(queue, memory, Bounds(
            knobs.prefill_budget, room_left(knobs.total_budget, queue, memory, knobs.requires_padding), least,
            knobs.slots - len(queue.running), padded=knobs.requires_padding, phantoms=knobs.quirk_phantom_prefix))
        if not batch.rows:
            return Step(blocked=batch.blocked, fickle=batch.wanting)
        self._since = queue.decoding.turn
        return Step(batch.rows, decodes=False, blocked=batch.blocked)


def _widest(step: Step, queue: Queue) -> int:
    """Tokens that each row of a padded step takes: the longest prompt, or the longest context."""
    if step.chunks:
        return max(tokens for _, tokens in step.chunks)
    return max(request.computed for request in queue.running.values())
