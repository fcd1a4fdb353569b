"""The engine says the same whoever is beside a request, and the policies' own objects drive it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'calibration'")

from calibration.attention.gather import GatherAndAttend
from calibration.engine import Engine, said_alone
from calibration.live import Stopwatch, run_live
from calibration.llama import Llama
from calibration.shard import TINY, Shard
from calibration.tables import BlockTables
from cost_models import Constant, ModelSpec
from simulator.batch import ListedSet
from simulator.errors import InputError
from simulator.facts import facts_of
from simulator.policies import POLICIES, Policy
from simulator.request import Request
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.step import Queue, Step
from traces import Trace

CPU = torch.device("cpu")
SMALL = ModelSpec(name="small", layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, ffn=96, vocab=199,
                  max_model_len=512)
PAGE = 4
ENGINES_WITHOUT_PADDING: dict[str, dict[str, Any]] = {
    "static": {"max_batch_size": 3}, "dynamic": {}, "orca": {"max_bs": 4}, "sglang": {"disable_radix_cache": True},
    "tgi": {}, "tensorrt_llm": {"max_batch_size": 4},
    "vllm": {"max_num_seqs": 4, "max_num_batched_tokens": 24, "enable_prefix_caching": False},
    "vllm-0": {"max_num_seqs": 4},
}


@pytest.fixture(scope="module")
def model() -> Llama:
    return Llama(Shard.of(SMALL), GatherAndAttend(), torch.float32, CPU)


def workload(requests: int = 10) -> Trace:
    rng = np.random.default_rng(5)
    return Trace("short", np.zeros(requests, np.int64), rng.integers(1, 40, requests), rng.integers(1, 25, requests))


def scenario(policy: Policy, capacity: int, **options: Any) -> Scenario:
    return Scenario(trace=workload(), policy=policy, load="saturated", kv_capacity_tokens=capacity, model=SMALL,
                    cost_model=Stopwatch(), max_tokens="exact", exact=True, **options)


def said(model: Llama, policy: Policy, capacity: int = 1000) -> tuple[dict[int, list[int]], Any]:
    """What every request said, and the run."""
    engine = Engine(model, capacity // PAGE + 10, PAGE)
    free = engine.tables.free
    result = run_live(scenario(policy, capacity), engine)
    assert engine.tables.free == free
    return engine.tokens, result


@pytest.mark.parametrize("name", ENGINES_WITHOUT_PADDING)
def test_every_policy_gets_the_answers_that_requests_give_alone(model: Llama, name: str) -> None:
    tokens, result = said(model, POLICIES[name](**ENGINES_WITHOUT_PADDING[name]))
    trace = workload()
    assert result.summary()["completed"] == len(trace)
    for index, prompt in enumerate(trace.prompt.tolist()):
        answer = tokens[index][prompt:]
        assert len(answer) == trace.output[index]
        assert said_alone(model, prompt, tokens[index]) == answer
    assert len({token for known in tokens.values() for token in known}) > SMALL.vocab // 3    # it says many things


def test_a_preempted_request_goes_on_as_if_nothing_had_happened(model: Llama) -> None:
    options = ENGINES_WITHOUT_PADDING["vllm"] | {"block_size": PAGE}
    at_ease, _ = said(model, POLICIES["vllm"](**options))
    pressed, result = said(model, POLICIES["vllm"](**options), capacity=80)
    assert result.summary()["preemptions"] > 0
    assert pressed == at_ease


@pytest.mark.parametrize("name", ["static", "vllm"])
def test_the_run_takes_the_steps_that_a_simulation_takes(model: Llama, name: str) -> None:
    """All requests are there from the start, so no decision depends on how long a step takes."""
    policy = POLICIES[name](**ENGINES_WITHOUT_PADDING[name])
    _, live = said(model, policy)
    simulated = run(Scenario(trace=workload(), policy=policy, load="saturated", kv_capacity_tokens=1000, model=SMALL,
                             cost_model=Constant(1_000_000), max_tokens="exact"))
    for column in ("decodes", "context", "chunks", "prompt", "running", "waiting"):
        assert live.record.steps[column].tolist() == simulated.record.steps[column].tolist()
    assert (np.diff(live.record.ends) > 0).all()
    assert "cost model: stopwatch (measured while it ran)" in facts_of(live.setup)


def test_requests_that_come_later_find_the_clock_that_ran(model: Llama) -> None:
    trace = workload().at_rate(2000.0, 1.0, np.random.default_rng(0))
    engine = Engine(model, 300, PAGE)
    result = run_live(Scenario(trace=trace, policy=POLICIES["vllm"](**ENGINES_WITHOUT_PADDING["vllm"]), model=SMALL,
                               kv_capacity_tokens=1000, cost_model=Stopwatch(), max_tokens="exact"), engine)
    assert result.summary()["completed"] == len(trace)
    assert (result.timeline.first_token > result.timeline.sent).all()


@pytest.mark.parametrize(("policy", "complaint"), [
    (POLICIES["static"](max_batch_size=3, padded=True), "the engine computes no padding"),
    (POLICIES["static"](max_batch_size=3, run_to=30), "the engine computes no padding"),
    (POLICIES["vllm"](max_num_seqs=4, block_size=PAGE), "shares no prefixes"),
], ids=["padded", "run_to", "prefix caching"])
def test_what_the_engine_cannot_do_it_refuses(model: Llama, policy: Policy, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        said(model, policy, capacity=80)


def test_pages_are_dealt_out_as_a_request_grows() -> None:
    tables, request = BlockTables(3, PAGE), Request(0, 0, 9, 9)
    assert len(tables.grow(request, PAGE)) == 1
    assert len(tables.grow(request, PAGE + 1)) == 2
    with pytest.raises(InputError, match="1 free pages, request 1 needs 2 more"):
        tables.grow(Request(1, 0, 9, 9), PAGE + 1)
    tables.release(request)
    assert tables.free == 3


def test_a_step_that_only_preempts_frees_pages_and_computes_nothing(model: Llama) -> None:
    """Orderly policies may answer so where nobody fits."""
    engine, request = Engine(model, 3, PAGE), Request(0, 0, 9, 9)
    engine.tables.grow(request, PAGE + 1)
    queue = Queue(ListedSet(PAGE, lambda *_: None))
    engine.execute(Step(preempted=[request]), queue)
    assert (engine.tables.free, engine.tokens) == (3, {})


def test_other_models_are_refused() -> None:
    from cost_models import MODELS, CostModelError
    with pytest.raises(CostModelError, match="opt-13b is not shaped like Llama"):
        Shard.of(MODELS["opt-13b"])
    with pytest.raises(CostModelError, match="head_dim of small must be even for rotary positions, got 15"):
        Shard.of(replace(SMALL, head_dim=15))


def test_a_shard_is_its_share() -> None:
    from cost_models import MODELS
    whole, half = Shard.of(MODELS["llama-3.1-8b"]), Shard.of(MODELS["llama-3.1-8b"], 2)
    assert (whole.qkv, whole.o, whole.gate_up, whole.down, whole.head) == (
        (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096))
    assert (half.qkv, half.o, half.gate_up, half.down, half.head) == (
        (3072, 4096), (4096, 2048), (14336, 4096), (4096, 7168), (64128, 4096))
    assert Shard.of(TINY).parameters == pytest.approx(TINY.parameters, rel=0.01)
