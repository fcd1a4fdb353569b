"""What every policy must do, bundled or a user's own: the same worlds and the same questions for each.

Nothing here knows an engine's rule. A policy that joins POLICIES is asked all of this without a line more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from invariants import TICKED
from simpy import Environment
from worlds import STEP, Affine, World, columns, deployment_of, differences, play, play_both, trace_of

import simulator as sim
from cost_models import Constant, CostModel, StepShape, cost_model
from simulator.clients import Client
from simulator.errors import InputError
from simulator.memory import UNLIMITED
from simulator.policies import POLICIES, Orca, Policy, StaticBatching, Vllm, load_policy
from simulator.policies.making import make_policy
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ("recorded", "transcribed", "published", "textbook", "general knowledge")
MODEL_LEN, CAPACITY = 96, 480
Rows = list[tuple[int, int, int, int]]


@cache
def own_policy() -> type[Policy]:
    """The policy that the README shows, from a file, as a user would have it."""
    readme = (ROOT / "README.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "ShortestFirst" in block)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "my_policy.py"
        path.write_text(code)
        return load_policy(f"{path}:ShortestFirst")


KINDS: dict[str, type[Policy]] = {**POLICIES, "README": own_policy()}
EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
BUNDLED = pytest.mark.parametrize("kind", POLICIES.values(), ids=POLICIES)
CONTINUOUS = [name for name, kind in POLICIES.items() if kind.streams]
AT_THE_DOOR = "its cap is a front door that refuses: who keeps below it sends requests at other times"


def drawn(seed: int, count: int = 24, most: int = 30) -> Rows:
    """Rows in bursts and gaps, some on the lattice of the step ends; declared lengths are the outputs or above."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0, 0, 3, STEP, 4 * STEP, 900], count)
    at, rows = 0, []
    for gap in gaps.tolist():
        at += gap
        prompt, output = int(rng.integers(1, 60)), int(rng.integers(1, most))
        rows.append((at, prompt, output, min(output + int(rng.integers(0, 9)), MODEL_LEN - prompt)))
    return [(at, prompt, min(output, limit), limit) for at, prompt, output, limit in rows]


WORLDS: dict[str, tuple[Rows, dict[str, Any]]] = {
    "scattered": (drawn(1), {}),
    "crowded": ([(0, *row[1:]) for row in drawn(2, 40)], {"capacity": 200, "max_model_len": MODEL_LEN}),
    "answers of one token": ([(at, prompt, 1, 1) for at, prompt, _, _ in drawn(3)], {}),
    "a closed loop": ([(0, *row[1:]) for row in drawn(4)], {"max_concurrency": 3}),
    "dear contexts": (drawn(5), {"cost": Affine(3, 0, 2, 50)}),
}


def options(name: str) -> dict[str, Any]:
    return {"capacity": CAPACITY, "max_model_len": MODEL_LEN, "cost": Affine(), **WORLDS[name][1]}


@cache
def world_of(kind: type[Policy], name: str, exact: bool = False) -> World:
    return play(WORLDS[name][0], kind(), exact=exact, verify=False, **options(name))


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize("name", WORLDS)
@EVERY
def test_what_is_true_of_every_simulation(kind: type[Policy], name: str, exact: bool) -> None:
    """Conservation, order of stamps, capacity, progress, and no idle replica while an admissible request waits."""
    for invariant in TICKED:
        invariant(world_of(kind, name, exact))


@pytest.mark.parametrize("name", WORLDS)
@EVERY
def test_fast_equals_exact(kind: type[Policy], name: str) -> None:
    assert differences(world_of(kind, name, exact=True), world_of(kind, name)) == []


@EVERY
def test_nobody_starves_on_a_finite_trace(kind: type[Policy]) -> None:
    """One long request among a stream of short ones that fills the server: it ends, and the work is bounded."""
    rows = sorted([(at * STEP, 8, 2, 2) for at in range(300)] + [(5 * STEP, 80, 16, 16)])
    world = play(rows, kind(), capacity=CAPACITY, max_model_len=MODEL_LEN)
    assert len(world.left) == 301
    recomputed = int(world.record.steps["redone"].sum())
    assert len(world.record.ends) <= sum(prompt + output for _, prompt, output, _ in rows) + recomputed


@EVERY
def test_two_runs_are_equal_and_an_object_used_twice_is_as_two_fresh_ones(kind: type[Policy]) -> None:
    rows, policy = WORLDS["crowded"][0], kind()
    settings = policy.settings()
    first, second = (play(rows, policy, **options("crowded")) for _ in range(2))
    fresh = world_of(kind, "crowded")
    assert columns(first) == columns(second) == columns(fresh)
    assert policy.settings() == settings, "resolving changes a copy"


@EVERY
def test_a_resolved_policy_resolves_to_itself(kind: type[Policy]) -> None:
    deployment = deployment_of(WORLDS["scattered"][0], CAPACITY, MODEL_LEN)
    once = kind().resolve(deployment)
    assert once.resolve(deployment).settings() == once.settings()


def left_at(kind: type[Policy], rows: Rows, ids: list[int]) -> tuple[list[int], list[int]]:
    """When each row leaves if the requests carry these ids, and the ends of all steps."""
    deployment = deployment_of(rows, 200, MODEL_LEN)
    outputs = np.zeros(len(rows), np.int64)
    outputs[ids] = [row[2] for row in rows]
    policy, env, left = kind().resolve(deployment), Environment(initial_time=0), [0] * len(rows)
    requests = (Request(who, row[0], row[1], row[3]) for who, row in zip(ids, rows, strict=True))
    client = Client(env, requests)

    def answered(request: Request) -> None:
        left[ids.index(request.index)] = env.now    # type: ignore[call-overload]
        client.finished(request)

    replica = Replica(env, policy, policy.memory(deployment, outputs), Pricing(Affine()), outputs.tolist(),
                      on_finish=answered)
    client.send_to(replica)
    env.run()
    return left, replica.record.ends.tolist()


@EVERY
def test_ids_do_not_matter(kind: type[Policy]) -> None:
    if kind.name == "tensorrt_llm":
        pytest.skip("its rule keeps requests of one instant in the order of their ids")
    rows = WORLDS["crowded"][0]
    shuffled = np.random.default_rng(0).permutation(len(rows)).tolist()
    assert left_at(kind, rows, shuffled) == left_at(kind, rows, list(range(len(rows))))


COSTS = {"regimes": cost_model("regimes", model="llama-3.1-8b", gpu="h100-80"), "affine": Affine(),
         "constant": Constant(10_000_000)}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize(("prompt", "output"), [(1, 1), (17, 2), (60, 36)])
@EVERY
def test_one_request_on_an_idle_server(kind: type[Policy], prompt: int, output: int, cost: CostModel) -> None:
    """One prefill and output - 1 decodes, to the nanosecond; it waits for nothing."""
    sent = 12_345
    world = play_both([(sent, prompt, output)], kind(), capacity=CAPACITY, cost=cost, max_model_len=MODEL_LEN)
    lasts = [cost.time(StepShape(0, 0, ((prompt, 0),)))]
    lasts += [cost.time(StepShape(1, prompt + ahead)) for ahead in range(output - 1)]
    assert world.stays(0) == [(sent, sent + sum(lasts))]
    assert world.token_times(0) == (sent + np.cumsum(lasts)).tolist()


@EVERY
def test_every_request_is_answered_through_the_front_door(kind: type[Policy]) -> None:
    """With the gate, the pool, a trace's own times and declared lengths that are far too long."""
    rows = [(at, prompt, output) for at, prompt, output, _ in drawn(7, 60)]
    result = sim.simulate(trace_of(rows), kind(), kv_capacity_tokens=2000, max_model_len=400, max_tokens=300,
                          cost_model=Constant(STEP))
    summary = result.summary()
    assert (summary["completed"], summary["rejected"]) == (60, 0)


SCRIPT = """
import hashlib, sys
sys.path.insert(0, "tests")
from worlds import Affine, columns, play
sys.path.insert(0, "tests/simulator")
from test_every_policy import MODEL_LEN, drawn
from simulator.policies import POLICIES
for name, kind in POLICIES.items():
    world = play(drawn(8, 40), kind(), capacity=200, cost=Affine(), max_model_len=MODEL_LEN, verify=False)
    print(name, hashlib.sha256(repr(sorted(columns(world).items())).encode()).hexdigest())
"""


def test_the_same_input_gives_the_same_run_under_any_hash_seed() -> None:
    said = [subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True,
                           env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}).stdout
            for seed in ("1", "2")]
    assert said[0] == said[1]
    assert said[0].count("\n") == len(POLICIES)


@BUNDLED
def test_it_says_what_it_mirrors_and_what_it_leaves_out(kind: type[Policy]) -> None:
    module = sys.modules[kind.__module__]
    assert module.__doc__, "the file says what it does"
    assert kind.__doc__, "the class says what it is"
    assert POLICIES[kind.name] is kind
    assert kind.version != Policy.version
    assert kind.evidence in EVIDENCE
    assert kind.left_out, "no mirror is complete"
    assert all(isinstance(each, str) for each in kind.left_out)


@BUNDLED
def test_every_knob_is_documented(kind: type[Policy]) -> None:
    for knob in kind.knobs():
        told = "\n".join(base.__doc__ or "" for base in kind.__mro__)
        assert re.search(rf"^ +{knob}: .+", told, re.MULTILINE), f"{kind.name}: {knob}"


WRONG = ("nonsense", -1, -0.5, float("nan"), [], {})


@pytest.mark.parametrize("value", WRONG, ids=repr)
@BUNDLED
def test_a_wrong_knob_is_refused_in_one_line_that_names_it(kind: type[Policy], value: Any) -> None:
    """No knob of any engine takes such a value; words are taken by none but those that list them."""
    for knob in kind.knobs():
        with pytest.raises(InputError) as error:
            make_policy(kind.name, {knob: value})
        assert "\n" not in str(error.value)
        assert str(error.value).startswith(f"{kind.name}: {knob} ")


@BUNDLED
def test_an_unknown_knob_is_refused_with_those_that_are_known(kind: type[Policy]) -> None:
    with pytest.raises(InputError, match=f"unknown knob of {kind.name} 'no_such_knob'"):
        make_policy(kind.name, {"no_such_knob": 1})


@BUNDLED
def test_the_cap_on_requests_is_kept_and_can_be_lowered(kind: type[Policy]) -> None:
    bounded = kind().bounded_by(2)
    assert bounded.slots == 2
    world = play([(0, 5, 9, 9)] * 12, bounded, max_model_len=MODEL_LEN)
    assert world.record.plan("running").max() == 2


def decisions(world: World) -> list[tuple[object, ...]]:
    return [(tick.now, tick.computing, tick.left) for tick in world.ticks]


def one_at_a_time(policy: Policy, seed: int) -> World:
    return play(drawn(seed), policy, exact=True, cost=Constant(STEP), max_model_len=MODEL_LEN)


@pytest.mark.parametrize("seed", range(40, 45))
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_policies_with_one_slot_agree(name: str, seed: int) -> None:
    """Who has one slot has no choice: first come, first served, a prompt and then its tokens."""
    if POLICIES[name]().bounded_by(1).max_outstanding == 1:
        pytest.skip(AT_THE_DOOR)
    world = one_at_a_time(POLICIES[name]().bounded_by(1), seed)
    reference = one_at_a_time(StaticBatching(max_batch_size=1), seed)
    assert decisions(world) == decisions(reference)
    assert world.left_at == reference.left_at


@pytest.mark.parametrize("seed", range(50, 60))
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_a_static_batch_of_one_is_orca_with_a_batch_of_one(cost: CostModel, seed: int) -> None:
    static, orca = (play(drawn(seed), policy, exact=True, cost=cost) for policy in
                    (StaticBatching(max_batch_size=1), Orca(max_bs=1)))
    assert decisions(static) == decisions(orca)
    assert static.record.ends.tolist() == orca.record.ends.tolist()


@pytest.mark.parametrize("seed", range(60, 70))
@pytest.mark.parametrize("cap", [1, 3, 8, 64])
def test_vllm_without_bounds_is_orca_without_bounds(cap: int, seed: int) -> None:
    """What tells them apart is the token budget, paging and the prefix cache; without them the rule is the same."""
    vllm = Vllm(max_num_seqs=cap, max_num_batched_tokens=UNLIMITED, enable_prefix_caching=False)
    worlds = [play(drawn(seed, 30), policy, exact=True, cost=Affine()) for policy in (vllm, Orca(max_bs=cap))]
    assert decisions(worlds[0]) == decisions(worlds[1])
    assert worlds[0].left_at == worlds[1].left_at


def test_a_wait_that_never_ends_is_only_for_those_who_ask_for_it() -> None:
    """The suite knows one policy that sleeps beside a request: static batching that waits for a full batch."""
    patient = replace(StaticBatching(), max_wait=inf, max_batch_size=3)
    world = play([(0, 4, 2, 2), (100, 4, 2, 2)], patient)
    assert world.stays(0)[0][0] == 100
