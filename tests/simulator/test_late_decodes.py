"""Late decodes: who computes just the token it emitted last is priced and recorded as a decode, in the set or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
from worlds import play_both, trace_of

from cost_models import Constant, CostModel, StepShape
from simulator.batch import LockstepSet
from simulator.measure import Rows, rows_of, shape_of
from simulator.memory import Memory
from simulator.policies import Vllm
from simulator.request import Request
from simulator.simulation import simulate
from simulator.step import Queue, Step


@dataclass(frozen=True)
class Heard(CostModel):
    """Keeps what it is asked; every step lasts 10 ns."""

    name: ClassVar[str] = "heard"
    origin: ClassVar[str] = "stated"
    shapes: list[StepShape] = field(default_factory=list)

    def time(self, shape: StepShape) -> int:
        self.shapes.append(shape)
        return 10


@dataclass
class Trimming(Vllm):
    """At 20 ns the budget is `least` tokens, so that the youngest lose theirs."""

    steady: ClassVar[bool] = False
    least: int = 2

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        usual, self.max_num_batched_tokens = self.max_num_batched_tokens, self.least if now == 20 else 64
        step = super().plan(queue, memory, now)
        self.max_num_batched_tokens = usual
        return step


TRIMMING = Trimming(block_size=4, max_num_seqs=8)


def request(prompt: int, computed: int, generated: int) -> Request:
    made = Request(0, 0, prompt, 99)
    made._computed, made._generated = computed, generated
    return made


@pytest.mark.parametrize(("prompt", "computed", "generated", "tokens", "late"), [
    (4, 6, 3, 1, True),       # it has emitted three tokens, and the third has no KV
    (4, 4, 1, 1, True),
    (4, 3, 0, 1, False),      # the last token of a prompt is a chunk
    (1, 0, 0, 1, False),      # and so is a prompt of one
    (4, 5, 3, 1, False),      # it lacks two, and computes one of them
    (4, 5, 3, 2, False),
])
def test_what_is_late(prompt: int, computed: int, generated: int, tokens: int, late: bool) -> None:
    one = request(prompt, computed, generated)
    queue = Queue(LockstepSet(4, lambda *span: None))
    rows = Rows(1, computed) if late else Rows(0, 0, ((tokens, computed),), tokens, there=computed)
    assert rows_of(Step([(one, tokens)]), queue) == rows
    assert shape_of(Step([(one, tokens)]), rows) == StepShape(*rows[:3])
    assert rows_of(Step([(one, tokens)], decodes=False), queue) == rows, "a pause keeps nobody else out"


@pytest.mark.parametrize("order", ["fcfs", "priority"])
def test_a_trimmed_decode_is_a_decode_when_it_comes_back(order: str) -> None:
    rows, heard = [(0, 2, 6), (0, 3, 6), (0, 4, 4)], Heard()
    world = play_both(rows, replace(TRIMMING, scheduling_policy=order), cost=heard)
    steps = world.record.steps
    assert world.log[2:4] == ["20: 0+1 1+1 | emit 0 1", "30: 0+1 1+1 2+1 | emit 0 1 2"]
    assert steps["decodes"].tolist() == [0, 3, 2, 3, 3, 2]
    assert steps["chunks"].tolist() == [3, 0, 0, 0, 0, 0]
    assert steps["prompt"].tolist() == [9, 0, 0, 0, 0, 0]
    assert steps["context"].tolist() == [0, 9, 3 + 4 + 0, 4 + 5 + 5, 5 + 6 + 6, 6 + 7]
    assert heard.shapes[3] == StepShape(3, 14)


@pytest.mark.parametrize("order", ["fcfs", "priority"])
def test_a_prompt_for_which_no_token_is_left_goes_on_where_it_stopped(order: str) -> None:
    world = play_both([(0, 2, 4), (0, 3, 4), (0, 130, 1)], replace(TRIMMING, scheduling_policy=order))
    assert world.log[1:] == [
        "10: 0+1 1+1 2+62 | emit 0 1", "20: 0+1 1+1 | emit 0 1", "30: 0+1 1+1 2+9 | emit 0 1 2 | leave 0 1 2"]


def test_beside_a_prompt_it_is_told_apart() -> None:
    heard = Heard()
    world = play_both([(0, 2, 4), (0, 3, 4), (25, 5, 1)], replace(TRIMMING, least=1), cost=heard)
    assert world.log[3] == "30: 0+1 1+1 2+5 | emit 0 1 2 | leave 0 2"
    row = {name: int(world.record.steps[name][3]) for name in ("decodes", "context", "chunks", "prompt", "redone")}
    assert row == {"decodes": 2, "context": 4 + 4, "chunks": 1, "prompt": 5, "redone": 0}
    assert heard.shapes[3] == StepShape(2, 8, ((5, 0),))


def test_who_finds_all_its_blocks_again_but_for_the_last_token_decodes() -> None:
    """Preempted with eight tokens in two full blocks; both are still there when it comes back, and it lacks one."""
    world = play_both([(0, 4, 6), (0, 4, 6)], Vllm(block_size=4, max_num_seqs=8, max_num_batched_tokens=64),
                      capacity=4 * (5 + 1))
    assert world.log[5:] == [
        "50: 0+1 | wait 1 | preempt 1 | emit 0 | leave 0",
        "60: 1+1 | emit 1 | leave 1",
    ]
    steps = world.record.steps
    assert [int(steps[name][6]) for name in ("decodes", "context", "chunks", "prompt", "redone")] == [1, 8, 0, 0, 0]


def test_it_is_new_work_in_the_ledgers() -> None:
    rows = [(0, 2, 6), (0, 3, 6), (0, 4, 4)]
    result = simulate(trace_of(rows), replace(TRIMMING, max_num_seqs=3), cost_model=Constant(10),
                      kv_capacity_tokens=4000)
    assert result.slot_ledger.parts["decode"] == 10 * (5 + 5 + 3)
    assert result.slot_ledger.parts["stalled"] == 10
    assert result.token_ledger.parts == {"useful": 2 + 3 + 4 + 13, "padding": 0, "recompute": 0}
