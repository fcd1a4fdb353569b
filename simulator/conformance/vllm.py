"""vLLM's recordings: its options, requests and steps, in the engine's own words.

Options (absent ones take these defaults): max_num_seqs 16, max_num_batched_tokens 2048, block_size 16,
num_gpu_blocks 1000 (the reserved null block included), enable_chunked_prefill true, enable_prefix_caching false,
long_prefill_token_threshold 0, policy fcfs, max_model_len 8192, watermark 0, scheduler_reserve_full_isl true;
clock step (time counts steps) or us (a step takes step_base_us + step_per_token_us x its tokens); max_steps 200000,
where the recorder gives up; comment.

Requests: id, prompt_tokens, output_tokens, arrival_step or arrival_us (0), priority (0); prefix_group and
prefix_tokens: requests of a group have their first prefix_tokens in common; or prompt_token_ids instead of all three.
Prompts of max_model_len and more are refused, and outputs are cut where prompt and output reach it.

A step is one call of schedule() and what follows from it:
    step        clock step: when it began; clock us: how many went before it
    t_us        when it began, with clock us
    arrived     ids that were added just before it
    sched       [id, new|resumed|running, tokens, tokens computed before] of all who compute, in the engine's order
    preempted   ids, in the order of preemption
    tokens      tokens scheduled
    used_sched  blocks held right after schedule()
    sampled     ids that emitted a token
    finished    ids that did so for the last time; they are freed before the next step
    used, free  blocks held after the step, and the others, those that hold reusable KV included
    n_running, n_waiting, running, waiting    after the step; a list that is shorter than its number was cut

A header may say n_requests, usable_blocks, rejected (ids), watermark_blocks, reserve_full_isl and the options again. A
footer may say end, steps, tokens, preemptions, finished, unfinished, n_unfinished, empty_steps and peak_running.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.conformance.engine import Case, Clock, Decision, Totals, as_far
from simulator.conformance.recording import MOST_BLOCKS, Line, Recording, known_fields, known_options, name_of, whole
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.policies.vllm import Vllm
from simulator.request import Request

OPTIONS: Line = {
    "max_num_seqs": 16, "max_num_batched_tokens": 2048, "block_size": 16, "num_gpu_blocks": 1000,
    "enable_chunked_prefill": True, "enable_prefix_caching": False, "long_prefill_token_threshold": 0,
    "policy": "fcfs", "max_model_len": 8192, "watermark": 0.0, "scheduler_reserve_full_isl": True,
    "clock": "step", "step_base_us": 0, "step_per_token_us": 0, "max_steps": 200_000,
}
"""The recorder's options and their defaults."""
WHOLE = {"num_gpu_blocks": 2, "max_model_len": 2, "step_base_us": 0, "step_per_token_us": 0, "max_steps": 1}
"""Whole numbers among them that no policy checks, and the least that each may be."""
REQUEST = ("id", "prompt_tokens", "output_tokens", "arrival_step", "arrival_us", "priority", "prefix_group",
           "prefix_tokens", "prompt_token_ids")
STEP = ("step", "t_us", "arrived", "sched", "preempted", "tokens", "used_sched", "sampled", "finished", "used", "free",
        "n_running", "n_waiting", "running", "waiting")

Prefix = tuple[tuple[Any, int], ...]


@dataclass(frozen=True)
class VllmCase(Case):
    """One recording of vLLM.

    Attributes:
        options: All of them, the defaults filled in.
        refused: Ids of the requests that the engine's front end does not let in.
    """

    options: Line
    refused: list[str]

    def tell(self, decision: Decision, line: Line) -> Line:
        by_step = self.options["clock"] == "step"
        return {
            "step": decision.start if by_step else decision.number, "t_us": decision.start,
            "arrived": decision.arrived,
            "sched": [[row.name, row.kind, row.tokens, row.computed] for row in decision.rows],
            "preempted": decision.preempted, "tokens": decision.tokens, "used_sched": decision.used_planned,
            "sampled": decision.sampled, "finished": decision.finished, "used": decision.used, "free": decision.free,
            "n_running": len(decision.running), "n_waiting": len(decision.waiting),
            "running": as_far(decision.running, line, "running", "n_running"),
            "waiting": as_far(decision.waiting, line, "waiting", "n_waiting"),
        }

    def tell_header(self, line: Line) -> Line:
        again = line.get("options")
        told = {name: value for name, value in self.options.items() if not isinstance(again, dict) or name in again}
        return {
            "n_requests": len(self.requests) + len(self.refused), "usable_blocks": self.memory.capacity,
            "rejected": self.refused,
            "watermark_blocks": int(self.options["watermark"] * self.options["num_gpu_blocks"]),
            "reserve_full_isl": self.options["scheduler_reserve_full_isl"], "options": told,
        }

    def tell_footer(self, totals: Totals, line: Line) -> Line:
        stalled = "stalled: nothing schedulable, no arrivals left"
        end = "max_steps (livelock?)" if totals.gave_up else stalled if totals.unfinished else "done"
        return {
            "end": end, "steps": totals.steps, "tokens": totals.tokens, "preemptions": totals.preemptions,
            "finished": totals.finished,
            "unfinished": as_far(list(totals.unfinished), line, "unfinished", "n_unfinished"),
            "n_unfinished": len(totals.unfinished), "empty_steps": totals.empty_steps,
            "peak_running": totals.peak_running,
        }


def vllm_case(recording: Recording, policy: type[Vllm] = Vllm) -> VllmCase:
    """A recording of vLLM, to be replayed by the policy of that name or by a class made from it."""
    options = options_of(recording)
    try:
        chosen, deployment = _policy(options, policy)
    except InputError as error:
        raise InputError(f"{recording.paths['options']}: {error}") from None
    everybody = requests_of(recording, options)
    requests = [request for request in everybody if request.prompt < options["max_model_len"]]
    for index, request in enumerate(requests):
        request.index = index
    outputs = [request.max_tokens for request in requests]
    by_step = options["clock"] == "step"
    return VllmCase(
        chosen, chosen.memory(deployment, np.array(outputs, np.int64)),
        Clock(1) if by_step else Clock(options["step_base_us"], options["step_per_token_us"]),
        requests, outputs, 1 if by_step else options["step_base_us"], options["max_steps"],
        tuple(field for field in STEP if field != "t_us" or not by_step),
        options, [request.name for request in everybody if request.prompt >= options["max_model_len"]])


def _policy(options: Line, kind: type[Vllm]) -> tuple[Vllm, Deployment]:
    knobs = {knob: options[knob] for knob in kind.knobs() if knob in options}
    policy = kind(**knobs, scheduling_policy=options["policy"])
    size = options["num_gpu_blocks"] * policy.block_size
    deployment = Deployment(kv_capacity_tokens=size, max_model_len=options["max_model_len"])
    return policy.resolve(deployment), deployment


def options_of(recording: Recording) -> Line:
    """A recording's options, checked where no policy does it, the defaults filled in."""
    where, options = str(recording.paths["options"]), known_options(recording, OPTIONS)
    for name, least in WHOLE.items():
        whole(options, name, where, least=least, most=MOST_BLOCKS)
    if options["clock"] not in ("step", "us"):
        raise InputError(f"{where}: clock must be step or us, not {options['clock']!r}")
    if options["clock"] == "us" and not options["step_base_us"] + options["step_per_token_us"]:
        raise InputError(f"{where}: with clock us a step needs a duration: give step_base_us or step_per_token_us")
    return options


def requests_of(recording: Recording, options: Line) -> list[Request]:
    """All requests in the order in which they are sent, the refused ones included."""
    names: dict[str, str] = {}
    blocks: dict[Any, int] = {}
    found = []
    for where, row in recording.requests():
        request = _request(row, where, options, blocks)
        if request.name in names:
            raise InputError(f"{where}: id '{request.name}' is also in {names[request.name]}")
        names[request.name] = where.rpartition(", ")[2]
        found.append(request)
    return sorted(found, key=lambda request: request.arrival)


def _request(row: Line, where: str, options: Line, blocks: dict[Any, int]) -> Request:
    known_fields(row, REQUEST, where)
    name, field = name_of(row, where), f"arrival_{options['clock']}"
    if (other := "arrival_us" if field == "arrival_step" else "arrival_step") in row:
        raise InputError(f"{where}: clock is {options['clock']}, so give {field} instead of {other}")
    prompt, prefix = _prompt(row, where, options["block_size"], blocks)
    output = min(whole(row, "output_tokens", where, least=1), max(1, options["max_model_len"] - prompt))
    return Request(0, whole(row, field, where, default=0), prompt, output, prefix=prefix, name=name,
                   priority=whole(row, "priority", where, least=None, default=0))


def _prompt(row: Line, where: str, size: int, blocks: dict[Any, int]) -> tuple[int, Prefix]:
    """How long the prompt is, and which tokens it may share with others."""
    if "prompt_token_ids" in row:
        tokens = row["prompt_token_ids"]
        if not isinstance(tokens, list) or not tokens:
            raise InputError(f"{where}: prompt_token_ids must be a list of whole numbers")
        return len(tokens), chain(tokens, size, blocks)
    prompt, group = whole(row, "prompt_tokens", where, least=1), row.get("prefix_group")
    shared = min(prompt, whole(row, "prefix_tokens", where, default=0))
    return prompt, ((str(group), shared),) if group is not None and shared else ()


def chain(tokens: list[Any], size: int, blocks: dict[Any, int]) -> Prefix:
    """Each full block of a prompt as a prefix of its own: two are one if they and all before them are equal."""
    found: list[tuple[int, int]] = []
    for end in range(size, len(tokens) + 1, size):
        key = (found[-1][0] if found else None, *map(str, tokens[end - size:end]))
        found.append((blocks.setdefault(key, len(blocks)), end))
    return tuple(found)
