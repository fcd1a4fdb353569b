"""TensorRT-LLM's traces: options, requests and steps of its two schedulers, written down from the published sources.

Options: num_blocks; policy GUARANTEED_NO_EVICT (capacity_scheduler_policy), chunking null (context_chunking_policy,
null: no chunked prefill), tokens_per_block 32, max_batch_size 2048, max_num_tokens 8192, two_step_look_ahead false;
comment. Absent ones take the engine's defaults; num_blocks has none.

Requests: id, arrival (the step before which it comes), prompt_len, max_tokens (declared), output_len (true).

A step is one call of both schedulers and what follows from it:
    step        when it began, counted in steps
    fitting     ids that the capacity scheduler lets through, in its order
    context     {id, tokens, pos: tokens computed before, last_chunk} of those that compute their context, in the order
                of the micro-batch
    generation  ids that generate, by their places in the list of active requests
    paused      ids, in the order in which they were paused
    blocks_used blocks held right after the decision
    finished    ids that emitted their last token
    active_not_scheduled    ids that are there and compute nothing, by their places
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simulator.conformance.engine import Case, Clock, Decision, Row, in_order
from simulator.conformance.recording import MOST_BLOCKS, Line, Recording, known_fields, known_options, name_of, whole
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.policies.tensorrt_llm import TensorRtLlm
from simulator.request import Request

OPTIONS: Line = {"num_blocks": None, "policy": "GUARANTEED_NO_EVICT", "chunking": None, "tokens_per_block": 32,
                 "max_batch_size": 2048, "max_num_tokens": 8192, "two_step_look_ahead": False}
"""The options and their defaults."""
REQUEST = ("id", "arrival", "prompt_len", "max_tokens", "output_len")
STEP = ("step", "fitting", "context", "generation", "paused", "blocks_used", "finished", "active_not_scheduled")
MOST_STEPS = 200_000


@dataclass(frozen=True)
class TensorRtLlmCase(Case):
    """One trace of TensorRT-LLM."""

    policy: TensorRtLlm

    def tell(self, decision: Decision, line: Line) -> Line:
        rows = {row.name: row for row in decision.rows}
        contexts = [request.name for request in self.policy.fitting]
        generation = self._by_place(name for name in rows if name not in contexts)
        pushed_out = [request.name for request in self.policy.pushed_out]
        here = {*decision.running, *decision.waiting, *rows, *decision.preempted}
        return {
            "step": decision.start, "fitting": self._fitting(generation + pushed_out, contexts),
            "context": self._context(rows, set(decision.sampled)),
            "generation": generation, "paused": decision.preempted, "blocks_used": decision.used_planned,
            "finished": self._by_place(decision.finished),
            "active_not_scheduled": self._by_place(here - set(rows)),
        }

    def _context(self, rows: dict[str, Row], sampled: set[str]) -> list[Line]:
        computing = [rows[request.name] for request in self.policy.contexts]
        return [{"id": row.name, "tokens": row.tokens, "pos": row.computed, "last_chunk": row.name in sampled}
                for row in computing]

    def _fitting(self, generation: list[str], contexts: list[str]) -> list[str]:
        """Those who generate come first, unless the capacity scheduler keeps the order of the list."""
        if self.policy.capacity_scheduler_policy in ("MAX_UTILIZATION", "MAX_REQUESTS"):
            return self._by_place(generation + contexts)
        return self._by_place(generation) + contexts

    def _by_place(self, names: Iterable[str]) -> list[str]:
        wanted = set(names)
        return [request.name for request in sorted(self.requests, key=self.policy.place) if request.name in wanted]


def tensorrt_llm_case(recording: Recording, policy: type[TensorRtLlm] = TensorRtLlm) -> TensorRtLlmCase:
    """A trace of TensorRT-LLM, to be replayed by the policy of that name or by a class made from it."""
    options = options_of(recording)
    try:
        chosen = _policy(options, policy)
    except InputError as error:
        raise InputError(f"{recording.paths['options']}: {error}") from None
    requests, outputs = in_order(recording, _request)
    deployment = Deployment(kv_capacity_tokens=options["num_blocks"] * chosen.tokens_per_block)
    return TensorRtLlmCase(chosen, chosen.memory(deployment, np.array(outputs, np.int64)), Clock(1), requests, outputs,
                           1, MOST_STEPS, STEP)


def _policy(options: Line, kind: type[TensorRtLlm]) -> TensorRtLlm:
    knobs = {knob: options[knob] for knob in kind.knobs() if knob in options}
    if options["chunking"] is not None:
        knobs |= {"enable_chunked_prefill": True, "context_chunking_policy": options["chunking"]}
    return kind(**knobs, capacity_scheduler_policy=options["policy"])


def options_of(recording: Recording) -> Line:
    """A trace's options, checked where no policy does it, the defaults filled in."""
    options = known_options(recording, OPTIONS)
    whole(recording.options, "num_blocks", str(recording.paths["options"]), least=1, most=MOST_BLOCKS)
    return options


def _request(row: Line, where: str) -> tuple[Request, int]:
    known_fields(row, REQUEST, where)
    declared, output = whole(row, "max_tokens", where, least=1), whole(row, "output_len", where, least=1)
    if output > declared:
        raise InputError(f"{where}: output_len ({output}) must be at most max_tokens ({declared})")
    return Request(0, whole(row, "arrival", where, default=0), whole(row, "prompt_len", where, least=1), declared,
                   name=name_of(row, where)), output
