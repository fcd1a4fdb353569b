"""SGLang's rule: prompts first. A prefill batch runs alone while all others pause; only if there is none, they decode.

Mirrors: SGLang 0.5.23, the loop without overlap, one page size for all. Source: its Scheduler, PrefillAdder,
ScheduleBatch and RadixCache, and decisions recorded from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from simulator.memory.base import Memory
from simulator.policies.sglang.adder import PrefillAdder
from simulator.policies.sglang.orders import arrange
from simulator.policies.sglang.ratio import NewTokenRatio, after_a_retraction
from simulator.policies.sglang.retraction import retract
from simulator.policies.sglang.settings import Settings
from simulator.request import Request
from simulator.step import Obstacle, Queue, Step, Wait


@dataclass
class Sglang(Settings):
    """SGLang 0.5.23: prompts first, as far as a ratio expects memory to last.

    Its knobs are in Settings.

    Attributes:
        ratio: The new-token ratio, as it was when the latest step was planned.
        batch_is_full: Nobody is let in before somebody leaves the running batch, or another takes its place.
    """

    name: ClassVar[str] = "sglang"
    version: ClassVar[str] = "SGLang 0.5.23 (without overlap)"
    evidence: ClassVar[str] = "recorded"
    left_out: ClassVar[tuple[str, ...]] = (
        "the overlap loop", "priorities and their preemption", "hrrn, shortest-prefill-first and routing-key orders",
        "hierarchical cache", "speculative decoding", "LoRA", "disaggregation", "sliding-window and state-space caches",
        "the failure of a chunk that finds too little memory: it takes what there is",
        "the abort of a request that no longer fits alone: it waits again")
    steady: ClassVar[bool] = True

    ratio: NewTokenRatio = field(init=False, repr=False, compare=False)
    batch_is_full: bool = field(default=False, init=False, repr=False)
    _why_full: Obstacle = field(default="memory", init=False, repr=False)
    _turn: int = field(default=0, init=False, repr=False)           # of the decoding set, when it was last looked at
    _decays: bool = field(default=False, init=False, repr=False)    # since then every turn was a plain decode step
    _idled: bool = field(default=False, init=False, repr=False)
    _reopens: bool = field(default=False, init=False, repr=False)   # batch_is_full does not outlive this step
    _jump: float | None = field(default=None, init=False, repr=False)
    _prefilled: int | None = field(default=None, init=False, repr=False)    # turn after the latest prefill batch
    _rng: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ratio = NewTokenRatio(self.schedule_conservativeness, self.init_new_token_ratio)
        self._rng = np.random.default_rng(self.random_seed)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self._catch_up(queue)
        return self._prefill(queue, memory) or self._decode(queue, memory)

    def idle(self, queue: Queue, memory: Memory, now: int) -> Wait | None:
        self._catch_up(queue)
        self._idled = True
        return None

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        self._reopens |= bool(finished)
        return finished

    def dropped(self, request: Request) -> None:
        self._reopens = True

    def _catch_up(self, queue: Queue) -> None:
        """What the steps since the latest plan have changed."""
        turns, self._turn = queue.decoding.turn - self._turn, queue.decoding.turn
        if self._idled:
            self.ratio.reset()
        elif self._jump is not None:
            self.ratio.value = self._jump
        elif self._decays:
            self.ratio.decay(turns)
        self.batch_is_full &= not self._reopens
        self._idled = self._decays = self._reopens = False
        self._jump = None

    def _prefill(self, queue: Queue, memory: Memory) -> Step | None:
        """A batch of prompts: the one that is in the middle, then who waits, as far as budgets and memory go."""
        unfinished = next(iter(queue.catching_up.values()), None)
        if not self._may_prefill(queue, unfinished):
            return None
        arrange(self.schedule_policy, queue, memory, self._rng)
        adder, step = self._adder(queue, memory), Step(decodes=False)
        rows = self.slots - len(queue.running)
        if unfinished is not None:
            adder.go_on(unfinished)
        self._scan(queue, adder, rows, step)
        return self._batch(queue, memory, adder, step) if adder.chunks else None

    def _may_prefill(self, queue: Queue, unfinished: Request | None) -> bool:
        if self._must_decode(queue):
            return False
        if unfinished is not None:
            return True
        if self.batch_is_full or not queue.waiting:
            return False
        if len(queue.running) >= self.slots:
            self._fill("cap")
        return not self.batch_is_full

    def _must_decode(self, queue: Queue) -> bool:
        """The latest prefill batch must be followed by more decode steps."""
        if self._prefilled is None or not queue.decoding.size:
            return False
        return queue.decoding.turn - self._prefilled < self.prefill_decode_interval

    def _fill(self, why: Obstacle) -> None:
        self.batch_is_full, self._why_full = True, why

    def _adder(self, queue: Queue, memory: Memory) -> PrefillAdder:
        assert self.chunked_prefill_size is not None
        decoding = queue.decoders()
        ratio = 1.0 if self.ignore_eos else self.ratio.value
        return PrefillAdder(queue, memory, ratio, decoding, mixed=len(decoding) if self.mixes else 0,
                            input_tokens=self.max_prefill_tokens, chunk_tokens=self.chunked_prefill_size,
                            page=self.page_size, most=self.prefill_max_requests,
                            foreseen=self.foresees)

    def _scan(self, queue: Queue, adder: PrefillAdder, rows: int, step: Step) -> None:
        """Let in from the head of the queue; the first that stays out ends it."""
        verdict = "continue"
        while queue.waiting and verdict == "continue" and not self.batch_is_full:
            if len(adder.chunks) >= rows:
                self._fill("cap")
            else:
                verdict = adder.add(queue.waiting[0])
        if verdict == "no token" and (adder.chunks or queue.running):
            self._fill("memory")
        step.blocked = self._why_full if self.batch_is_full else "budget" if queue.waiting else None

    def _batch(self, queue: Queue, memory: Memory, adder: PrefillAdder, step: Step) -> Step:
        """Make room for the batch. Where decodes ride along, the prompts go before them in the running order.

        A batch that joins nobody takes the place of the running one, and with it goes the word that that one is full;
        so it does when a prompt is cut.
        """
        step.chunks = adder.chunks
        for request, tokens in step.chunks:
            memory.grow(request, tokens)
        alone = not queue.decoding.size
        if self.mixes and not alone:
            step.decodes = memory.take(queue.decoding, ())
        if step.decodes:
            queue.lead(request for request, _ in step.chunks)
        self._reopens = alone or step.decodes or adder.cut is not None
        self._prefilled = queue.decoding.turn + step.decodes
        return step

    def _decode(self, queue: Queue, memory: Memory) -> Step | None:
        """One token for everybody; if that does not fit, some are sent back, and the ratio jumps."""
        if not queue.decoding.size:
            return None
        step = Step(blocked=self._why_full if self.batch_is_full else None)
        step.trimmed = not step.blocked and bool(queue.waiting or queue.catching_up)    # they are asked again
        self._decays = memory.take(queue.decoding, ())
        if not self._decays:
            self._jump = after_a_retraction(retract(queue, memory, step))
            self.batch_is_full, step.blocked = False, None
        return step
