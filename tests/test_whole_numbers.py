"""Numbers of numpy count as Python's wherever such a number is asked for, and are kept as Python's."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator import checks
from simulator.errors import InputError
from simulator.policies import POLICIES, DynamicBatching, Vllm
from simulator.policies.base import Policy
from simulator.studies.campaign import Backend
from simulator.studies.capacity.question import question_of

FIVE = np.int64(5)
SMALL: dict[str, Any] = {"cost_model": Constant(10), "max_tokens": "exact"}


def test_the_one_check_gives_the_number_back() -> None:
    for value in (5, FIVE, np.uint8(5)):
        assert (checks.whole("n", value), type(checks.whole("n", value))) == (5, int)
    assert checks.count("n", None) is None
    for wrong in (np.float64(5), np.bool_(True), True, np.int64(0), "5", None):
        with pytest.raises(InputError, match=r"^n must be a whole number of at least 1, not "):
            checks.whole("n", wrong)


@pytest.mark.parametrize("name", POLICIES)
def test_every_knob_of_every_policy_takes_them(name: str) -> None:
    kind = POLICIES[name]
    hints = {each.name: str(each.type) for each in fields(kind) if each.init}
    taken = 0
    for knob in (name for name, hint in hints.items() if "int" in hint or "float" in hint):
        for number in (0, 1, 16):
            try:
                plain = kind(**{knob: number})
            except InputError:
                continue
            made = kind(**{knob: np.int32(number)})
            assert made == plain
            assert not isinstance(getattr(made, knob), np.generic), knob
            taken += 1
    assert taken


def test_a_list_of_them_is_one_too() -> None:
    for listed in ([np.int64(4), 8], np.array([4, 8]), "4,8"):
        assert DynamicBatching(max_batch_size=8, preferred_batch_size=listed).preferred_batch_size == (4, 8)    # type: ignore
    assert DynamicBatching(preferred_batch_size=FIVE).preferred_batch_size == (5,)    # type: ignore[arg-type]
    with pytest.raises(InputError, match="must list whole numbers"):
        DynamicBatching(preferred_batch_size=[np.float32(2.5)])    # type: ignore[arg-type]


@dataclass
class Mine(Policy):
    """It checks nothing itself."""

    cap: int = 1


def test_a_policy_without_checks_of_its_own_keeps_them_as_python_does() -> None:
    assert type(Mine(cap=FIVE).cap) is int    # type: ignore[arg-type]


def test_a_scenario_takes_them_as_numbers_in_its_mappings() -> None:
    asked = sim.Scenario(goodput={"ttft": FIVE}, prices={"h100-80": FIVE}, max_retries=FIVE,
                         knobs={"max_num_seqs": FIVE}, scheduler_overhead={"all": (FIVE, np.int8(0))})
    assert json.dumps([asked.goodput, asked.prices, asked.knobs, asked.scheduler_overhead]) == (
        '[{"ttft": 5}, {"h100-80": 5}, {"max_num_seqs": 5}, {"all": [5, 0]}]')


def test_any_other_number_of_numpy_is_one_of_python_too() -> None:
    half, two, yes = np.float32(0.5), np.float16(2), np.bool_(True)
    asked = sim.Scenario(prompt_scale=two, sample=half, ttft_timeout=two, exact=yes, goodput={"ttft": half},
                         prices={"h100-80": two}, scheduler_overhead={"all": np.array([half, 0])},
                         knobs={"watermark": half, "enable_prefix_caching": yes})
    assert asked == sim.Scenario(prompt_scale=2.0, sample=0.5, ttft_timeout=2.0, exact=True, goodput={"ttft": 0.5},
                                 prices={"h100-80": 2.0}, scheduler_overhead={"all": (0.5, 0.0)},
                                 knobs={"watermark": 0.5, "enable_prefix_caching": True})
    json.dumps(asked.to_dict())
    assert Vllm(watermark=half, enable_prefix_caching=yes) == Vllm(watermark=0.5, enable_prefix_caching=True)
    assert checks.is_number(half)
    assert not checks.is_number(np.float32("nan"))
    with pytest.raises(InputError, match=r"^sample must be at most 1, not 2\.0$"):
        sim.Scenario(sample=two)


def test_shares_of_a_plan_are_kept_as_python_does() -> None:
    asked = question_of(sim.Scenario(goodput={"ttft": 5}), confidence=np.float32(0.5), attainment=np.float16(0.25))
    assert (asked.level, asked.objectives[0].share) == (0.5, 0.25)
    assert {type(asked.level), type(asked.objectives[0].share)} == {float}
    with pytest.raises(InputError, match=r"^attainment must be above 0, not None$"):
        question_of(sim.Scenario(goodput={"ttft": 5}), attainment=None)    # type: ignore[arg-type]


def test_an_array_is_a_list_of_them_wherever_a_knob_is_given() -> None:
    trace, sizes = trace_of([(0, 4, 1), (0, 4, 3)]), np.array([4, 8])
    runs = [sim.run(sim.Scenario(trace, "dynamic", {"preferred_batch_size": sizes}, **SMALL)),
            sim.simulate(trace, DynamicBatching(preferred_batch_size=sizes), **SMALL),    # type: ignore[arg-type]
            sim.compare(trace, ["static", "dynamic"], settings={"preferred_batch_size": sizes},
                        **SMALL).results["dynamic", "trace"]]
    assert [run.policy.preferred_batch_size for run in runs] == [(4, 8)] * 3    # type: ignore[attr-defined]
    found = sim.sweep(trace, "dynamic", points=[{"preferred_batch_size": sizes}], vary={"rate_scale": sizes}, **SMALL)
    sizes[0] = 1
    assert [each["preferred_batch_size"] for each in found.records] == [(4, 8)] * 2
    with pytest.raises(InputError, match=r"^cuda_graph_sizes must be 'vllm', 'none' or numbers between .*, not \[1, "
                                         r"2\]$"):
        sim.Scenario(cuda_graph_sizes=[1, 2])    # type: ignore[arg-type]


def test_a_run_tells_the_same() -> None:
    trace = trace_of([(0, 4, 1), (0, 4, 3), (0, 4, 2)])
    runs = (sim.simulate(trace, Vllm(max_num_seqs=number), kv_capacity_tokens=tokens, **SMALL)
            for number, tokens in ((2, 512), (np.int64(2), np.int64(512))))
    plain, ours = (json.loads(each.to_json()) for each in runs)
    assert {**plain, "date": 0} == {**ours, "date": 0}


def test_studies_take_them() -> None:
    trace = trace_of([(0, 4, 1), (0, 4, 3), (9, 4, 2), (9, 4, 2)])
    found = sim.sweep(trace, replications=np.int64(2), retries=np.int64(0), vary={"max_num_seqs": np.array([1, 2])},
                      backend=Backend(workers=np.int64(1)), num_prompts=np.int64(4), **SMALL)
    assert len(found.outcomes) == 4
    assert [type(value) for each in found.variants.values() for value in each.values.values()] == [int] * 4
    assert json.dumps([dict(each) for each in found.records], default=repr).count("int64") == 0
    asked = question_of(sim.Scenario(trace=trace, goodput={"ttft": 500}), max_gpus=FIVE, replications=FIVE,
                        tensor_parallel_sizes=(np.int64(1), 1))
    assert (asked.max_gpus, asked.sizes, type(asked.sizes[0])) == (5, (1,), int)
    assert json.dumps(asked.plain())
    told = sim.explain(trace, request=np.int64(1), **SMALL)
    assert (told.request, type(told.request)) == (1, int)
    assert json.dumps(sim.plan("azure-conv-2023", num_prompts=np.int64(60), goodput={"ttft": 500},
                               replications=np.int64(2)).question.plain())
