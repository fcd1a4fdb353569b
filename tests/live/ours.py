"""Our vllm policy on a scenario, through the Replica's own plan and commit, told in the recordings' words."""

from __future__ import annotations

from typing import Any

from live import blocks
from live.scenarios import DEFAULTS, Line, Scenario, arrival, first_difference

from simulator.conformance.engine import Clock, Decision
from simulator.conformance.replaying import Replay
from simulator.conformance.vllm import VllmCase
from simulator.deployment import Deployment
from simulator.errors import PolicyError
from simulator.memory import Memory
from simulator.policies import Vllm
from simulator.request import Request


def run(scenario: Scenario, *, exact: bool, kind: type[Vllm] = Vllm, memory: type[Memory] | None = None) -> list[Line]:
    """All steps. The last one of each stretch also says what the memory holds: evictable and shared blocks.

    Where requests push each other out for ever, these are the steps until the watchdog says so.
    """
    case = make_case(scenario, kind, memory)
    decisions: list[Decision] = []
    held: dict[int, tuple[int, Line]] = {}    # by plan, so that the last step of a stretch remains

    def hear(decision: Decision) -> None:
        decisions.append(decision)
        replica = replay._replica
        held[len(replica.record.plans)] = decision.number, _held(case.memory, replica.queue.running.values())

    replay = Replay(case, exact=exact, on_decision=hear)
    try:
        while replay.advance():
            pass
    except PolicyError as error:
        if "nobody got any further" not in str(error):
            raise
    noted = dict(held.values())
    if replay.totals.gave_up:    # amid a stretch, maybe: the memory is that of its end
        noted.pop(decisions[-1].number)
    return [case.tell(decision, {}) | noted.get(decision.number, {}) for decision in decisions]


def make_case(scenario: Scenario, kind: type[Vllm] = Vllm, memory: type[Memory] | None = None) -> VllmCase:
    """The scenario with a fresh policy and memory."""
    options = scenario.options
    knobs = {knob: options[knob] for knob in kind.knobs() if knob in options}
    deployment = Deployment(options["num_gpu_blocks"] * options["block_size"], options["max_model_len"])
    policy = kind(**knobs, scheduling_policy=options["policy"]).resolve(deployment)
    requests = [_request(index, row, options) for index, row in enumerate(scenario.requests)]
    outputs = [request.max_tokens for request in requests]
    pool = memory(options["num_gpu_blocks"] - 1, options["block_size"]) if memory else policy.memory(deployment, None)
    return VllmCase(policy, pool, Clock(scenario.base, scenario.per_token), requests, outputs, scenario.base,
                    options["max_steps"], (), options, [])


def _request(index: int, row: Line, options: Line) -> Request:
    output = min(row["output_tokens"], max(1, options["max_model_len"] - row["prompt_tokens"]))
    return Request(index, arrival(row), row["prompt_tokens"], output, priority=row.get("priority", 0), name=row["id"],
                   prefix=tuple((name, end) for name, end in row["prefix"]))


def _held(memory: Memory, running: Any) -> Line:
    """What the memory holds; and is what it says of itself consistent?"""
    assert 0 <= memory.evictable <= memory.free <= memory.capacity
    shared, rest = divmod(memory.shared_tokens, memory.block_size)
    assert not rest
    assert memory.used + shared == sum(memory.blocks_for(request.computed) for request in running)
    return {"evictable": memory.evictable, "shared": shared}


def small(*rows: tuple[Any, ...], **options: Any) -> Scenario:
    """A scenario written by hand. A row is (id, arrival step, prompt, output[, {prefix id: reach}[, priority]])."""
    requests = [{"id": name, "arrival_step": at, "prompt_tokens": prompt, "output_tokens": output,
                 "prefix": [*map(list, (rest[0] if rest else {}).items())], "priority": rest[1] if rest[1:] else 0}
                for name, at, prompt, output, *rest in rows]
    return Scenario(DEFAULTS | {"enable_prefix_caching": True, "block_size": 4, "max_num_seqs": 8} | options, requests)


def log(scenario: Scenario) -> list[str]:
    """The steps of a scenario, on which the exact mode, the fast mode and the model by blocks agree.

    For example `3: a+1 b+8@16 | wait c | preempt d | leave b | used 5, 2 evictable, 1 shared`: b comes in, finds 16
    tokens and computes 8; the last part is after the step.
    """
    reference = blocks.run(scenario)
    for exact in (True, False):
        assert first_difference(run(scenario, exact=exact), reference) is None
    return [_told(line) for line in reference]


def _told(line: Line) -> str:
    parts = [" ".join(f"{name}+{tokens}" + f"@{before}" * (kind != "running" and before > 0)
                      for name, kind, tokens, before in line["sched"])]
    parts += [f"{word} {' '.join(line[field])}" for word, field in WORDS.items() if line[field]]
    counts = [f"{line[field]} {field}" for field in ("evictable", "shared") if line[field]]
    return f"{line['step']}: " + " | ".join([*parts, ", ".join([f"used {line['used']}", *counts])])


WORDS = {"wait": "waiting", "preempt": "preempted", "leave": "finished"}
