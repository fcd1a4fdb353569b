"""The gate and all that is settled before the first event: verdicts, clips, defaults, and wrong scenarios."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worlds import trace_of

from cost_models import CostModelError
from simulator.errors import FileChanged, InputError
from simulator.gate import VERDICTS
from simulator.policies import StaticBatching, Vllm
from simulator.scenario import Scenario
from simulator.setup import Setup, cost_of, prepare
from simulator.simulation import run, simulate
from simulator.traffic import as_read
from traces import TraceError

TOO_LONG, ENGINE, POOL = VERDICTS.index("longer than max_model_len"), 2, 3
FLAT = {"cost_model": "constant:1"}


def setup(rows: list[tuple[int, ...]], policy: Any = "vllm", **options: Any) -> Setup:
    return prepare(Scenario(trace=trace_of(rows), policy=policy, **options))


def conserved(result: Any) -> None:
    """submitted = finished + rejected, and nobody else: the run is over."""
    summary, asked = result.summary(), len(result.setup.trace)
    assert summary["completed"] + summary["rejected"] == asked
    assert len(result.record.sent) == summary["completed"] == (result.setup.verdict == 0).sum()
    emitted = (result.record.spans[:, 2] - result.record.spans[:, 1] + 1).sum()
    assert emitted == result.setup.output[result.setup.verdict == 0].sum()


def test_a_request_that_needs_more_blocks_than_exist_is_rejected_and_the_run_ends() -> None:
    """50 blocks of 16 tokens, a request of 57 blocks among others."""
    rows = [(0, 100, 20), (0, 800, 105), (0, 60, 60), (5, 30, 3)]
    assert -(-(800 + 105 - 1) // 16) == 57
    for exact in (False, True):
        result = simulate(trace_of(rows), "vllm", kv_capacity_tokens=50 * 16, exact=exact, **FLAT)
        assert result.setup.verdict.tolist() == [0, POOL, 0, 0]
        assert result.summary()["rejected"] == 1
        conserved(result)


@pytest.mark.parametrize(("prompt", "output", "fits"),
                         [(780, 5, True), (784, 1, True), (784, 2, False), (780, 6, False)])
def test_the_pool_is_49_blocks_and_the_last_token_needs_no_room(prompt: int, output: int, fits: bool) -> None:
    found = setup([(0, prompt, output)], kv_capacity_tokens=50 * 16)
    assert (found.verdict[0] == 0) == fits
    result = simulate(trace_of([(0, prompt, output)]), "vllm", kv_capacity_tokens=50 * 16, **FLAT)
    assert result.summary()["completed"] == int(fits)


@pytest.mark.parametrize("policy", ["vllm", "static"])
def test_requests_longer_than_the_model_are_counted_and_the_boundary_is_inclusive(policy: str) -> None:
    """Rows of 4000/300, 12000/500 and 8192/1 at 8192: prompt and output together may fill it, and no more."""
    rows = [(0, 4000, 300), (0, 12000, 500), (0, 8192, 1), (0, 8191, 1), (0, 8000, 192), (0, 8000, 193)]
    found = setup(rows, policy, max_model_len=8192)
    assert found.verdict.tolist() == [0, TOO_LONG, TOO_LONG, 0, 0, TOO_LONG]
    result = simulate(trace_of(rows), policy, max_model_len=8192, **FLAT)
    assert (result.summary()["completed"], result.summary()["rejected"]) == (3, 3)
    conserved(result)


def test_the_engines_own_limit_refuses_prompts_and_cuts_outputs_and_says_so() -> None:
    rows = [(0, 100, 50), (0, 100, 1), (0, 99, 50), (0, 60, 40), (0, 60, 41), (0, 101, 1), (0, 5000, 5000)]
    found = setup(rows, Vllm(max_model_len=100), max_model_len=8192)
    assert found.verdict.tolist() == [ENGINE, ENGINE, 0, 0, 0, ENGINE, TOO_LONG]
    assert found.output[2:5].tolist() == [1, 40, 40]
    assert found.rows.clipped == 2
    assert (found.max_tokens[2:5] >= found.output[2:5]).all()
    result = simulate(trace_of(rows), Vllm(max_model_len=100), max_model_len=8192, **FLAT)
    conserved(result)


def test_who_is_rejected_by_the_model_is_not_counted_as_cut_by_the_engine() -> None:
    assert setup([(0, 60, 5000)], Vllm(max_model_len=100), max_model_len=1000).rows.clipped == 0


@pytest.mark.parametrize("reserve", ["declared", "exact"])
@pytest.mark.parametrize("placement", ["first-fit", "buddy"])
def test_a_reservation_larger_than_the_pool_is_rejected(reserve: str, placement: str) -> None:
    rows = [(0, 40, 10), (0, 90, 20), (0, 60, 4), (0, 60, 5)]
    policy = StaticBatching(reserve=reserve, placement=placement)    # type: ignore[arg-type]
    found = setup(rows, policy, kv_capacity_tokens=100, max_tokens="exact")
    fits = [0, POOL, 0, POOL] if placement == "buddy" else [0, POOL, 0, 0]    # a buddy of 100 has a part of 64
    assert found.verdict.tolist() == fits
    conserved(simulate(trace_of(rows), policy, kv_capacity_tokens=100, max_tokens="exact", **FLAT))


def test_reserving_the_models_length_in_a_smaller_pool_rejects_everybody() -> None:
    result = simulate(trace_of([(0, 4, 1), (0, 9, 2)]), StaticBatching(reserve="model"), kv_capacity_tokens=1000,
                      max_model_len=1001, **FLAT)
    assert result.setup.verdict.tolist() == [POOL, POOL]
    assert (result.summary()["completed"], result.summary()["rejected"]) == (0, 2)
    conserved(result)


@pytest.mark.parametrize("policy", ["vllm", "static"])
@pytest.mark.parametrize("options", [{"max_model_len": 4}, {"kv_capacity_tokens": 1}, {"kv_capacity_tokens": 3}])
def test_everything_rejected_is_a_result_too(policy: str, options: dict[str, Any]) -> None:
    result = simulate(trace_of([(0, 9, 9), (5, 9, 9)]), policy, **options, **FLAT)
    assert (result.summary()["completed"], result.summary()["rejected"]) == (0, 2)
    assert len(result.record.ends) == 0
    json.loads(result.to_json())


@pytest.mark.parametrize("policy", ["vllm", "static"])
def test_an_empty_trace_is_a_result_too(policy: str) -> None:
    result = simulate(trace_of([]), policy, **FLAT)
    assert (result.summary()["completed"], result.summary()["rejected"]) == (0, 0)
    json.loads(result.to_json())


def test_a_rejected_last_request_does_not_keep_a_batch_waiting() -> None:
    """The client hears of accepted requests only, so it closes with the last of these."""
    rows = [(0, 4, 2), (10, 4, 2), (9_000_000_000, 400, 2)]
    result = simulate(trace_of(rows), StaticBatching(max_batch_size=8, max_wait=inf), kv_capacity_tokens=100,
                      max_tokens="exact", **FLAT)
    assert result.setup.verdict.tolist() == [0, 0, POOL]
    assert result.record.plan("start")[0] == 10
    conserved(result)


def test_lengths_beyond_any_machine_are_rejected_and_do_not_wrap_around() -> None:
    huge = 1 << 62
    for policy in ("vllm", "static"):
        found = setup([(0, huge, huge), (0, 1, huge), (0, huge, 1), (0, 5, 5)], policy)
        assert (found.verdict[:3] != 0).all(), policy
        assert found.verdict[3] == 0


def test_the_default_batch_of_static_is_what_the_pool_holds_but_at_most_32() -> None:
    def batch(tokens: float, reserve: str = "declared") -> int | None:
        rows = [(0, 60, 20, 40), (0, 30, 10, 30)]
        return setup(rows, StaticBatching(reserve=reserve), kv_capacity_tokens=tokens, max_model_len=200).policy.slots

    assert [batch(tokens) for tokens in (100, 199, 200, 3199, 3200, inf)] == [1, 1, 2, 31, 32, 32]
    assert batch(160, "exact") == 2
    assert batch(400, "model") == 2
    assert batch(400, "pow2") == 4, "an output of 20 tokens reserves less than 40"
    assert setup([(0, 5, 5)], StaticBatching(max_batch_size=100), kv_capacity_tokens=50).policy.slots == 100


def test_who_can_never_be_served_does_not_shrink_everybody_elses_batch() -> None:
    """The longest reservation is that of the longest request that the gate lets in."""
    rows = [(0, 100, 10)] * 64
    for outlier in ([], [(0, 100, 5000)]):
        found = setup(rows + outlier, StaticBatching(), kv_capacity_tokens=3520, max_tokens="exact")
        assert found.verdict.sum() == POOL * len(outlier)
        assert found.policy.slots == 32


def test_declared_lengths_are_what_a_batch_reserves() -> None:
    rows = [(0, 10, 5)] * 4
    for max_tokens, together in (("exact", 4), ("x2", 3), (50, 1), ("model", 1)):
        result = simulate(trace_of(rows), StaticBatching(max_batch_size=8), max_tokens=max_tokens, max_model_len=64,
                          kv_capacity_tokens=64, **FLAT)
        assert result.record.plan("running")[0] == together, max_tokens
        conserved(result)


@pytest.mark.parametrize(("gpu", "seqs", "tokens"), [
    ("h100-80", 1024, 8192), ("h200", 1024, 8192), ("b200", 1024, 16384), ("a100-80", 256, 2048), ("l40s", 256, 2048)])
def test_vllm_defaults_by_gpu(gpu: str, seqs: int, tokens: int) -> None:
    policy = setup([(0, 5, 5)], gpu=gpu, model="llama-2-7b").policy
    assert (policy.max_num_seqs, policy.max_num_batched_tokens, policy.max_model_len) == (seqs, tokens, 4096)    # type: ignore[attr-defined]


def test_loads() -> None:
    rows: list[tuple[int, ...]] = [(7, 5, 5), (17, 5, 5), (47, 5, 5)]
    assert setup(rows, load="saturated").trace.arrival.tolist() == [0, 0, 0]
    assert setup(rows).trace.arrival.tolist() == [0, 10, 40]
    assert setup(rows, rate_scale=10.0).trace.arrival.tolist() == [0, 1, 4]
    assert setup(rows, num_prompts=2).trace.arrival.tolist() == [0, 10]
    assert setup(rows, request_rate=inf).trace.arrival.tolist() == [0, 0, 0]
    constant = setup(rows, request_rate=2.0, burstiness=inf).trace.arrival
    assert np.diff(constant).tolist() == [500_000_000] * 2
    drawn = [setup([(0, 5, 5)] * 27, request_rate=2.0, seed=seed).trace.arrival.tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_pool_without_bound_and_a_pool_that_nobody_could_count() -> None:
    for tokens in (inf, 1e18):
        for policy in ("vllm", StaticBatching(placement="buddy"), "static"):
            assert setup([(0, 5, 5)], policy, kv_capacity_tokens=tokens).verdict.tolist() == [0]


@pytest.mark.parametrize(("options", "words"), [
    ({"load": "full"}, "load must be saturated or trace"), ({"num_prompts": 0}, "num_prompts"),
    ({"max_concurrency": -1}, "max_concurrency"), ({"rate_scale": 0}, "rate_scale"),
    ({"rate_scale": float("nan")}, "rate_scale"),
    ({"request_rate": -3.0}, "request_rate"), ({"kv_capacity_tokens": 0}, "kv_capacity_tokens"),
    ({"kv_capacity_tokens": 1.5}, r"^kv_capacity_tokens must be a whole number or inf, not 1.5$"),
    ({"trace": 7}, "^trace must be a Trace, a name or a file, not 7$"),
    ({"policy": Vllm}, "^policy must be a name or a policy object such as Vllm\\(\\), not <class"),
    ({"reading": {"limit": 3}}, "^reading says how a file is read, and this trace is in memory: leave one of them out"),
    ({"trace": "t.csv", "reading": {"columns": "x"}}, "^columns of reading must map roles to names, not 'x'$"),
    ({"trace": "t.csv", "reading": {"lenient": 1}}, "^lenient of reading must be true or false, not 1$"),
    ({"trace": "t.csv", "reading": {"unit": 1}}, "^unit of reading must be text, not 1$"),
    ({"kv_capacity_tokens": 1e300}, "kv_capacity_tokens must be at most 1152921504606846976 or inf"),
    ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
    ({"goodput": {"latency": 5}}, "unknown goodput objective"),
    ({"goodput": {"ttft": -5}}, "goodput ttft"), ({"gpu": "h10"}, "did you mean 'h100-80'|unknown GPU"),
    ({"model": "llama-3.1-8"}, "unknown model"), ({"policy": "vlm"}, "did you mean 'vllm'"),
    ({"knobs": {"max_num_seq": 3}}, "did you mean 'max_num_seqs'"), ({"cost_model": "roof"}, "unknown cost model"),
    ({"max_tokens": "lots"}, "max_tokens"), ({"knobs": {"max_num_seqs": 0}}, "max_num_seqs must be"),
    ({"policy": Vllm(), "knobs": {"max_num_seqs": 3}}, "knobs go with a policy given by name"),
    ({"model": "llama-3.1-70b"}, "does not fit")])
def test_a_wrong_scenario_is_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises((InputError, CostModelError, TraceError), match=words) as error:
        prepare(Scenario(**({"trace": trace_of([(0, 5, 5)])} | options)))
    assert "\n" not in str(error.value)


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    run(Scenario(trace=trace_of([(0, 5, 5)] * 300), **FLAT), progress=lambda done, of: told.append((done, of)))
    assert told == [(256, 300), (300, 300)]


CODE = """
from worlds import trace_of
from simulator.policies import StaticBatching, Vllm
from simulator.simulation import simulate
rows = [(13 * at % 977 * 10**6, 5 + at % 90, 1 + 7 * at % 50) for at in range(300)]
rows.sort()
for policy, options in ((Vllm(max_num_seqs=9, max_num_batched_tokens=64), {"kv_capacity_tokens": 800}),
                        (StaticBatching(max_batch_size=7, placement="buddy"), {"request_rate": 40.0}),
                        ("vllm", {"max_concurrency": 5})):
    result = simulate(trace_of(rows), policy, model="llama-2-7b", gpu="a100-80", **options)
    record = result.record
    for column in (record.plans, record.ends, record.used, record.spans, record.stays, record.sent):
        print(hash_of(column.tobytes()))
    print([line for line in result.to_json(detailed=True).splitlines() if '"date"' not in line])
""".replace("hash_of", "__import__('hashlib').sha256").replace("tobytes())", "tobytes()).hexdigest()")


def test_same_seed_same_bytes_under_any_hash_seed() -> None:
    root = Path(__file__).resolve().parents[2]
    said = []
    for seed in ("0", "1", "4242"):
        path = os.pathsep.join([str(root), str(root / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
        found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False,
                               env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path})
        assert found.returncode == 0, found.stderr[-2000:]
        said.append(found.stdout)
    assert said[0]
    assert said[0] == said[1] == said[2]


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("from simulator.policies import Vllm\nwith open(__file__, 'a') as file:\n    file.write('# more')\n"
                   "class Mine(Vllm):\n    pass\n")
    with pytest.raises(FileChanged, match=r"mine.py has changed since it was first read"):
        prepare(Scenario(num_prompts=2, policy=f"{own}:Mine"))


@pytest.mark.parametrize(("field", "name", "more"), [
    ("model", "m.yaml", ""), ("cost_model", "m.yaml", ""), ("trace", "t.csv", ""), ("policy", "p.py", ":Mine")])
def test_what_never_ends_is_not_digested(tmp_path: Path, field: str, name: str, more: str) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises((InputError, TraceError, CostModelError), match="is no regular file"):
        prepare(Scenario(num_prompts=2, **{field: f"{tmp_path / name}{more}"}))    # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["model", "cost_model"])
def test_a_name_that_no_file_can_have_is_a_complaint_of_ours(field: str) -> None:
    scenario = Scenario(num_prompts=2, **{field: f"{'a' * 300}.yaml"})    # type: ignore[arg-type]
    with pytest.raises(CostModelError, match=r"File name too long$"):
        cost_of(scenario)
    with pytest.raises((InputError, CostModelError), match=r"File name too long$"):
        prepare(scenario)


def test_what_the_caller_changes_later_changes_no_scenario() -> None:
    knobs: dict[str, Any] = {"max_num_seqs": 4}
    columns, policy = {"arrival": "t"}, StaticBatching(max_batch_size=3)
    named = Scenario(num_prompts=5, knobs=knobs, goodput=(limits := {"ttft": 500.0}))
    made, read = Scenario(num_prompts=5, policy=policy), Scenario(trace="t.csv", reading={"columns": columns})
    results = [run(each).to_json() for each in (named, made)]
    knobs["max_num_seqs"], policy.max_batch_size, columns["arrival"], limits["ttft"] = 1, 1, "x", 1.0
    assert [run(each).to_json() for each in (named, made)] == results
    assert read.reading == {"columns": {"arrival": "t"}}


def test_equal_scenarios_have_equal_hashes() -> None:
    one, other = (Scenario(num_prompts=5, knobs={"max_num_seqs": 4}, rate_scale=rate) for rate in (2, 2.0))
    assert one == other
    assert hash(one) == hash(other) == hash(replace(one, read=trace_of([(0, 5, 5)]), files={"a": "b"}))
    assert hash(one) != hash(one.but(seed=1))
    assert {one: "kept"}[other] == "kept"
    assert hash(one.but(policy=Vllm(), knobs={})) == hash(one.but(policy=Vllm(), knobs={}))


def test_who_writes_into_the_tables_of_a_result_writes_into_his_own() -> None:
    result = run(Scenario(num_prompts=5))
    before, csv = result.to_json(), "".join(result.csv_pieces())
    for frame in (result.requests, result.steps):
        frame["mine"], frame.loc[0, frame.columns[-2]] = 1, 0
    assert "mine" not in result.requests
    assert "".join(result.csv_pieces()) == csv
    for array in (result.timeline.first_token, result.outcomes.tries, result.record.ends, result.setup.verdict):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert result.to_json() == before


def test_a_trace_is_not_mixed_into_itself() -> None:
    with pytest.raises(InputError, match=r"^mix: azure-conv-2023 is the trace itself, whose requests would come twice"):
        Scenario("azure-conv-2023", mix={"azure-conv-2023": 1.0})


def test_a_trace_at_hand_is_not_read_again() -> None:
    read = as_read(Scenario(num_prompts=2))
    assert as_read(read) is read


@pytest.mark.parametrize("on", [True, False])
def test_a_run_leaves_the_collector_as_it_was(on: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        simulate(trace_of([(0, 5, 5)]), cost_model="constant:1")
        assert gc.isenabled() == on
    finally:
        (gc.enable if was_on else gc.disable)()
