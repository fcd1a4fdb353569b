"""The simulator against one engine written once more in plain Python: every instant of every request, every step."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from one_engine import Engine, Job, OrcaEngine, StaticEngine, VllmEngine, run
from worlds import Affine, trace_of

from cost_models import Constant, CostModel
from simulator.policies import Orca, Policy, StaticBatching, Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run as simulated

LONGEST = 96
"""Tokens of a prompt or an answer, at most; the model holds both."""
Rows = list[tuple[int, int, int, int]]


def drawn(chance: Random) -> tuple[Rows, CostModel]:
    """A small trace: bursts or a trickle, short or long, on a lattice of the steps or off it."""
    cost: CostModel = chance.choice([Constant(chance.choice([1, 10])), Affine(), Affine(chance.randint(1, 30),
                                     chance.randint(0, 3), chance.randint(0, 3), chance.choice([1, 8, 1000]))])
    gap = chance.choice([0, 1, 10, 30, 100])
    longest, answers = (chance.choice([3, 12, 40, LONGEST]) for _ in range(2))
    rows, at = [], 0
    for _ in range(chance.randint(1, 30)):
        output = chance.randint(1, answers)
        rows.append((at, chance.randint(1, longest), output, output + chance.choice([0, 0, 5])))
        at += chance.choice([0, gap, chance.randint(0, 2 * gap)])
    return rows, cost


def vllm(chance: Random, rows: Rows) -> tuple[Policy, Engine, int]:
    """From roomy to so tight that one request alone just fits."""
    block = chance.choice([1, 2, 4, 16])
    most = max(-(-(prompt + output) // block) for _, prompt, output, _ in rows)
    blocks = most + chance.choice([0, 1, 2, most, 100 * most])
    seqs = chance.choice([1, 2, 3, 8, 64])
    chunked = chance.random() < 0.7
    budget = max(seqs, chance.choice([1, 2, 5, 16, 64, 4 * LONGEST])) if chunked else 2 * LONGEST
    knobs: dict[str, Any] = {"max_num_seqs": seqs, "max_num_batched_tokens": budget, "block_size": block,
                             "enable_chunked_prefill": chunked, "scheduler_reserve_full_isl": chance.random() < 0.5}
    engine = VllmEngine(blocks, seqs=seqs, budget=budget, block=block, chunked=chunked,
                        whole_prompt=knobs["scheduler_reserve_full_isl"])
    return Vllm(enable_prefix_caching=False, **knobs), engine, (blocks + 1) * block    # the first block is nobody's


def reserving(chance: Random, rows: Rows) -> tuple[int, int]:
    """A batch, and memory for the longest reservation or more."""
    most = max(prompt + declared for _, prompt, _, declared in rows)
    return chance.choice([1, 2, 3, 8, 64]), most + chance.choice([0, 1, most // 2, 2 * most, 100 * most])


def orca(chance: Random, rows: Rows) -> tuple[Policy, Engine, int]:
    batch, room = reserving(chance, rows)
    return Orca(max_bs=batch), OrcaEngine(room, batch=batch), room


def static(chance: Random, rows: Rows) -> tuple[Policy, Engine, int]:
    batch, room = reserving(chance, rows)
    return StaticBatching(max_batch_size=batch), StaticEngine(room, batch=batch), room


def instants(found: Result) -> list[tuple[int, ...]]:
    """Of each request: admitted, first token, last token, gone, preemptions."""
    line = found.timeline
    return list(zip(*(column.tolist() for column in (line.admitted, line.first_token, line.last_token, line.left,
                                                     line.preemptions)), strict=True))


RULES = {"vllm": vllm, "orca": orca, "static": static}


def differing(name: str, seed: int, *, exact: bool = False,
              late: bool = False) -> tuple[list[str], list[Job], list[int]]:
    """What the two engines differ in on a drawn trace, and what became of it: the requests, and the ends of steps."""
    chance = Random(f"{name} {seed}")
    rows, cost = drawn(chance)
    policy, engine, room = RULES[name](chance, rows)
    jobs = [Job(*row) for row in rows]

    def priced(decodes: list[int], chunks: list[int]) -> int:
        if isinstance(cost, Affine):
            return (cost.base + cost.per_row * len(decodes) + cost.per_token * sum(chunks)
                    + sum(decodes) // cost.context_div)
        assert isinstance(cost, Constant)
        return cost.step_ns

    ends = run(engine, jobs, priced, late=late)
    found = simulated(Scenario(trace_of(rows), policy, cost_model=cost, kv_capacity_tokens=float(room),
                               max_model_len=2 * LONGEST, exact=exact))
    told = {"rejected": (int((found.setup.verdict != 0).sum()), 0), "steps": (found.record.ends.tolist(), ends),
            "requests": (instants(found), [(job.admitted, job.first, job.last, job.left, job.preemptions)
                                           for job in jobs])}
    return [f"{name} {seed}: {what}: {mine} and not {theirs}" for what, (mine, theirs) in told.items()
            if mine != theirs], jobs, ends


def agree(name: str, seeds: range, *, exact: bool = False) -> int:
    found = [differing(name, seed, exact=exact) for seed in seeds]
    assert [each for wrong, _, _ in found for each in wrong] == []
    return sum(job.preemptions for _, jobs, _ in found for job in jobs)


@pytest.mark.parametrize("name", RULES)
def test_every_step_and_every_request_is_that_of_the_plain_engine(name: str) -> None:
    preempted = agree(name, range(300))
    assert (preempted > 300) == (name == "vllm")


@pytest.mark.parametrize("name", RULES)
def test_the_other_rule_for_ties_shows_where_there_is_a_tie_and_nowhere_else(name: str) -> None:
    """It moves a few traces, and only those on which somebody comes at the instant at which a step ends."""
    found = [differing(name, seed, late=True) for seed in range(200)]
    tied = [bool({job.arrival for job in jobs} & set(ends)) for _, jobs, ends in found]
    moved = [bool(wrong) for wrong, _, _ in found]
    assert 2 <= sum(moved) < sum(tied) < 120
    assert all(tie for tie, move in zip(tied, moved, strict=True) if move)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_so_it_is_on_thousands_of_traces(name: str, exact: bool) -> None:
    agree(name, range(1000, 3000), exact=exact)
