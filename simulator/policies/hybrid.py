"""Hybrid: everything between static batching and vLLM, one switch at a time. For asking which of them pays.

Mirrors: no engine. With all switches on one side it is `static`, with all on the other `vllm`, decision for decision;
in between it is what either would be with one habit of the other. A switch that cannot act says so here:

- granularity "batch" with reserve "paged": prompts enter by blocks; who has finished gives up its blocks and keeps its
  slot; a preempted request leads the next batch.
- granularity "batch" with prefill "mixed": nothing changes, for all prompts of a batch come before its decodes.
- granularity "step" with a reservation: a request enters at any step once its whole reservation finds a place, as in
  Orca, and is never preempted. max_wait has no meaning, for no batch is formed.
- granularity "step" with prefill "alone": whole prompts, in a step of their own, as soon as they may enter; decodes
  pause meanwhile. No token budget.
- padded changes what steps cost, not who is in them: prompts are as wide as the longest of the step, contexts too.
- enable_prefix_caching needs reserve "paged", for a reservation is one piece and cannot be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.contiguous import RESERVES
from simulator.policies.base import Policy, one_of
from simulator.policies.hybrid_rules import PagedBatches, PromptsAlone, ReservedPromptsAlone, ReservedSteps, pad
from simulator.policies.static import StaticBatching
from simulator.policies.vllm import Vllm
from simulator.policies.whole_batch import usual_size
from simulator.request import Request
from simulator.step import Queue, Step, Wait

Kind = TypeVar("Kind", bound=Policy)

RULES: dict[tuple[str, str, str], type[StaticBatching] | type[Vllm]] = {
    ("batch", "reserved", "alone"): StaticBatching,
    ("batch", "reserved", "mixed"): StaticBatching,
    ("batch", "paged", "alone"): PagedBatches,
    ("batch", "paged", "mixed"): PagedBatches,
    ("step", "reserved", "alone"): ReservedPromptsAlone,
    ("step", "reserved", "mixed"): ReservedSteps,
    ("step", "paged", "alone"): PromptsAlone,
    ("step", "paged", "mixed"): Vllm,
}
"""The rule by granularity, memory and prefill."""


@dataclass
class Hybrid(Policy):
    """Anything between static batching and vLLM; by default vLLM.

    Attributes:
        granularity: When slots are released and filled: at the end of a "batch", or at every "step".
        reserve: What a request takes of the memory: "paged", blocks as it grows; or a reservation as in `static`, of
            the "model" length, prompt + "declared" output, prompt + "exact" output, or "pow2".
        padded: Prompts and contexts are padded to the longest of the step, or of the batch.
        prefill: Prompts run "alone" and whole, or "mixed" with decodes, in chunks.
        max_batch_size: Requests at once where memory is reserved; default min(32, KV pool // longest reservation).
        max_wait: Milliseconds that the oldest request waits for a full batch, as in `static`.
        run_to: Output tokens that every batch runs to, as in `static`.
        sleep_per_batch: Milliseconds that the server sleeps before each batch, as in `static`.
        placement: How a reservation finds its place, as in `static`.
        max_num_seqs: Requests at once where memory is paged; default that of `vllm`.
        max_num_batched_tokens: Tokens a step where prompts are mixed with decodes; default that of `vllm`.
        block_size: Tokens a block of paged memory.
        enable_chunked_prefill: Where prompts are mixed with decodes, a prompt may be computed in several steps.
        enable_prefix_caching: Paged memory keeps full blocks for whoever has the same prefix.
        long_prefill_token_threshold: Longest chunk of one request while it is not alone, as in `vllm`.
        scheduler_reserve_full_isl: Admit only who finds room for all tokens known, as in `vllm`.
        watermark: Share of the blocks that an admission leaves free while others run, as in `vllm`.
        scheduling_policy: "fcfs" or "priority", as in `vllm`; batches are "fcfs".
        max_model_len: Longest prompt plus output, as in `vllm`; batches take what the model takes.
    """

    name: ClassVar[str] = "hybrid"
    version: ClassVar[str] = "no engine: static batching, vLLM 0.33.0 and what lies between them"
    evidence: ClassVar[str] = "textbook"
    left_out: ClassVar[tuple[str, ...]] = ("what `static` and `vllm` leave out", "what paged attention itself costs")
    steady: ClassVar[bool] = True

    granularity: str = "step"
    reserve: str = "paged"
    padded: bool = False
    prefill: str = "mixed"
    max_batch_size: int | None = None
    max_wait: float = 0.0
    run_to: int | None = None
    sleep_per_batch: float = 0.0
    placement: str = "first-fit"
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int = 16
    enable_chunked_prefill: bool = True
    enable_prefix_caching: bool = True
    long_prefill_token_threshold: int = 0
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    scheduling_policy: str = "fcfs"
    max_model_len: int | None = None
    _rule: StaticBatching | Vllm = field(default_factory=Vllm, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "granularity", ("batch", "step"))
        one_of(self, "reserve", (*RESERVES, "paged"))
        one_of(self, "prefill", ("alone", "mixed"))
        with self._own_words():
            self._rule = self._rule_of_switches()
            self._static(), self._as(Vllm)

    @contextmanager
    def _own_words(self, cap: str | None = None) -> Iterator[None]:
        """What the policy says that knows a knob is said under our name, and of the cap under the name it has here."""
        try:
            yield
        except InputError as error:
            words = str(error).partition(": ")[2]
            for name in ("max_num_seqs", "max_batch_size") if cap else ():
                words = words.replace(name, str(cap))
            raise InputError(f"{self.name}: {words}") from None

    @property
    def paged(self) -> bool:
        """Whether memory is taken block by block."""
        return self.reserve == "paged"

    def _as(self, kind: type[Kind], **changes: Any) -> Kind:
        """A policy of this kind with the knobs that go by the same names, but for the changes."""
        mine = self.settings()
        return kind(**{knob: mine[knob] for knob in kind.knobs()} | changes)

    def _static(self, kind: type[StaticBatching] = StaticBatching, **changes: Any) -> StaticBatching:
        """Static batching with our knobs; where memory is paged, what it would reserve does not matter."""
        return self._as(kind, **({"reserve": "declared"} if self.paged else {}), **changes)

    def _rule_of_switches(self) -> StaticBatching | Vllm:
        """The rule that goes with the switches; the cap is that of the memory."""
        kind = RULES[self.granularity, "paged" if self.paged else "reserved", self.prefill]
        cap = self.max_num_seqs if self.paged else self.max_batch_size
        if issubclass(kind, StaticBatching):
            return self._static(kind, max_batch_size=cap)
        tokens = UNLIMITED if self.prefill == "alone" else self.max_num_batched_tokens
        return self._as(kind, max_num_seqs=cap, max_num_batched_tokens=tokens)

    def resolve(self, deployment: Deployment) -> Self:
        batch = self.max_batch_size
        if not self.paged:
            batch = batch or usual_size(deployment, self._static().reserve)
        with self._own_words():
            vllm = self._as(Vllm).resolve(deployment)
            filled = replace(self, max_batch_size=batch, max_num_seqs=vllm.max_num_seqs,
                             max_num_batched_tokens=vllm.max_num_batched_tokens, max_model_len=vllm.max_model_len)
        with self._own_words("max_num_seqs" if self.paged else "max_batch_size"):
            filled._rule = filled._rule.resolve(deployment)
        return filled

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        return (self._as(Vllm) if self.paged else self._static()).memory(deployment, outputs)

    def room(self, prompt: Lengths, deployment: Deployment) -> Lengths | None:
        return self._rule.room(prompt, deployment)

    @property
    def streams(self) -> bool:    # type: ignore[override]
        """A batch returns whole answers."""
        return self._rule.streams

    @property
    def unit(self) -> str:    # type: ignore[override]
        """What it decides about at once."""
        return self._rule.unit

    @property
    def slots(self) -> int:
        return self._rule.slots

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_batch_size=slots, max_num_seqs=slots, max_num_batched_tokens=UNLIMITED, padded=False,
                       run_to=None)

    def urgency(self) -> Callable[[Request], Any] | None:
        return self._rule.urgency()

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        step = self._rule.plan(queue, memory, now)
        return pad(step, queue) if self.padded and self.granularity == "step" and isinstance(step, Step) else step

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        return self._rule.leaving(finished, queue)
