"""Orca: iteration-level scheduling, first come, first served, over memory that is reserved when a request starts.

Mirrors: Yu et al., Orca, OSDI 2022 (selection and reservation as published; its code is not public), and the
memories "Max", "Pow2" and "Oracle" by which Kwon et al., SOSP 2023, stand for it.
Each iteration takes the earliest requests that are not under way in another batch, up to ``max_bs``. A new one must
first reserve the slots of its prompt and its declared output; the first that cannot stops the selection. Nobody who
runs is behind it, and nobody is preempted. As many batches are in flight as the model has pipeline stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.contiguous import RESERVES, Contiguous, Reserve
from simulator.memory.spaces import SPACES
from simulator.policies.base import Policy, one_of, positive
from simulator.step import Queue, Step

LARGEST_PUBLISHED = 128


@dataclass
class Orca(Policy):
    """Orca, with whole prompts beside decodes in one batch.

    Attributes:
        max_bs: Most requests a batch; default 128, the largest of the paper.
        pipeline_stages: Stages that the model is split into, and batches in flight at once: n_workers in the paper.
        n_slots: Slots, each the keys and values of one token; default all of the KV cache.
        reserve: Slots a request reserves: prompt + "declared" output (Orca), the "model" length (Orca Max), prompt +
            true output rounded up to a power of two, "pow2" (Orca Pow2), or prompt + "exact" output (Orca Oracle).
        placement: How a reservation finds its place: "counted", slots anywhere (Orca); "buddy", an interval of a power
            of two (the three of SOSP 2023); or "first-fit".
        max_model_len: Longest prompt plus output, in tokens; default the model's.
    """

    name: ClassVar[str] = "orca"
    version: ClassVar[str] = "Orca (OSDI 2022)"
    evidence: ClassVar[str] = "published"
    left_out: ClassVar[tuple[str, ...]] = ("the cost of attention one request at a time",
                                           "uneven stages and the transfers between them")
    steady: ClassVar[bool] = True

    max_bs: int | None = None
    pipeline_stages: int = 1
    n_slots: int | None = None
    reserve: Reserve = "declared"
    placement: str = "counted"
    max_model_len: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_bs", "pipeline_stages", "n_slots", "max_model_len")
        one_of(self, "reserve", RESERVES)
        one_of(self, "placement", tuple(SPACES))

    def resolve(self, deployment: Deployment) -> Self:
        capacity = deployment.kv_capacity_tokens
        if self.n_slots is not None and self.n_slots > capacity:
            raise InputError(f"orca: n_slots ({self.n_slots}) is more than the KV cache holds ({capacity} tokens): "
                             "lower it, or raise --kv-capacity-tokens")
        return replace(self, max_bs=self.max_bs or LARGEST_PUBLISHED, n_slots=self.n_slots or capacity,
                       max_model_len=self.max_model_len or deployment.max_model_len)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        slots, model_len = self.n_slots or UNLIMITED, self.max_model_len or deployment.max_model_len
        return Contiguous.reserving(self.reserve, slots, model_len, outputs, self.placement)

    @property
    def slots(self) -> int:
        return self.max_bs or UNLIMITED

    @property
    def batches_in_flight(self) -> int:
        return self.pipeline_stages

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_bs=slots, pipeline_stages=1, n_slots=None)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step([(request, request.lacking) for request in queue.catching_up.values()])    # back from a pipeline
        room = self.slots - queue.decoding.size - len(step.chunks)
        while queue.waiting:
            head = queue.waiting[0]
            if not room:
                step.blocked = "cap"
            elif not memory.grow(head, head.prompt):
                step.blocked = memory.shortage
            if step.blocked:
                break
            step.chunks.append((queue.admit(), head.prompt))
            room -= 1
        return step if step.chunks or queue.decoding.size else None
