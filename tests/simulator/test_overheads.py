"""What comes on top of a step's price: noise, the scheduler's host time, captured graphs, a request's overhead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from worlds import STEP, Affine, play, trace_of

import simulator as sim
from cost_models import Constant, CostModelError, StepShape, bundled_profiles, cost_model
from cost_models.fits import Range
from cost_models.noise import noise_for
from cost_models.writing import profile_text
from simulator.errors import InputError
from simulator.policies import StaticBatching, Vllm

MS = 1_000_000
def test_the_scheduler_adds_its_time_to_each_step() -> None:
    # Two requests of three tokens: three steps with both.
    world = play([(0, 4, 3), (0, 4, 3)], Vllm(), cost=Constant(STEP), scheduling=(5, 2))
    assert world.record.ends.tolist() == [19, 38, 57]


def test_a_stretch_counts_the_host_time_of_each_step() -> None:
    """The second one comes in the 11th step, and is let in by the 12th."""
    world = play([(0, 4, 30), (201, 4, 1)], Vllm(), cost=Constant(STEP), scheduling=(STEP, 0))
    assert world.record.ends.tolist() == [2 * STEP * step for step in range(1, 31)]
    assert world.left_at[1] == 12 * 2 * STEP
    assert world.plans < 10


def test_noise_changes_each_step_by_its_own_factor() -> None:
    noise = noise_for(Constant(1), 0.3, 7)
    world = play([(0, 4, 30)], Vllm(), cost=Constant(1000), noise=noise, scheduling=(11, 0))
    lasts = np.diff(world.record.ends, prepend=0) - 11
    first = noise.draw([1000], 0, StepShape(0, 0, ((4, 0),)))
    assert lasts.tolist() == first + noise.draw([1000] * 29, 1, StepShape(1, 4))
    assert len(set(lasts.tolist())) > 20


TRACE = trace_of([(i * 40 * MS, 200 + 37 * (i % 11), 30 + 17 * (i % 7)) for i in range(300)])


def means(**options: Any) -> dict[str, Any]:
    return sim.simulate(TRACE, "vllm", **options).summary()


def test_noise_of_30_percent_hardly_moves_the_mean() -> None:
    calm = means()
    for seed in (0, 1):
        noisy = means(noise=0.3, seed=seed)
        assert noisy["mean_tpot_ms"] == pytest.approx(calm["mean_tpot_ms"], rel=0.02)
        assert noisy["output_throughput"] == pytest.approx(calm["output_throughput"], rel=0.01)
        assert noisy["std_itl_ms"] > calm["std_itl_ms"]
    assert means(noise="profile")["noise"] == "profile"


def test_a_bias_moves_more_than_noise() -> None:
    calm, slower = means(cost_model="constant:20"), means(cost_model="constant:21")
    noisy = means(cost_model="constant:20", noise=0.3)
    change = slower["mean_tpot_ms"] / calm["mean_tpot_ms"] - 1
    assert change == pytest.approx(0.05, abs=0.005)
    assert abs(noisy["mean_tpot_ms"] / calm["mean_tpot_ms"] - 1) < change / 2


def test_the_same_seed_draws_the_same_noise() -> None:
    assert means(noise=0.3, seed=4) | {"date": ""} == means(noise=0.3, seed=4) | {"date": ""}
    assert means(noise=0.3, seed=4)["duration"] != means(noise=0.3, seed=5)["duration"]


def test_noise_needs_an_error_to_draw_from() -> None:
    with pytest.raises(CostModelError, match=r"^'roofline' states no error to draw noise from: give a number"):
        means(cost_model="roofline", noise="profile")


def test_padding_is_not_blamed_for_noise_and_host_time() -> None:
    # Padded batches of one request pad nothing; of two, the shorter prompt is padded: only that is an excess.
    padded = StaticBatching(max_batch_size=2, padded=True)
    calm = play([(0, 4, 3), (0, 9, 3)], padded, cost=Affine())
    noisy = play([(0, 4, 3), (0, 9, 3)], padded, cost=Affine(), noise=noise_for(Affine(), 0.3, 1), scheduling=(50, 9))
    assert calm.record.plan("excess").tolist() == noisy.record.plan("excess").tolist()


def test_a_step_of_no_cost_takes_the_host_time() -> None:
    """However cheap the kernels, a step lasts as long as the host needs; a small model is bound by it."""
    quick = [means(cost_model="constant:0.000001", scheduler_overhead={"all": (ms, 0.0)}) for ms in (0.5, 1.0, 2.0)]
    for summary, ms in zip(quick, (0.5, 1.0, 2.0), strict=True):
        assert summary["mean_tpot_ms"] == pytest.approx(ms, rel=1e-3)
        assert summary["scheduler_overhead_ms"] == ms


def test_a_scheduler_costs_what_its_policy_is_given() -> None:
    overhead = {"vllm": (0.1, 0.016), "all": (0.5, 0.0)}
    assert sim.simulate(TRACE, "vllm", scheduler_overhead=overhead).setup.scheduling == (100_000, 16_000)
    assert sim.simulate(TRACE, "static", scheduler_overhead=overhead).setup.scheduling == (500_000, 0)
    with pytest.raises(InputError, match=r"^unknown policy of scheduler_overhead 'vlm': did you mean 'vllm'\?"):
        means(scheduler_overhead={"vlm": (1.0, 0.0)})


def test_an_overhead_of_a_request_delays_what_the_client_receives() -> None:
    plain, late = means(), means(request_overhead=8)
    for name in ("mean_ttft_ms", "p99_ttft_ms", "mean_e2el_ms", "mean_ttft_delivery_ms"):
        assert late[name] == pytest.approx(plain[name] + 8)
    for name in ("mean_tpot_ms", "p99_itl_ms", "mean_queue_time_ms", "steps", "slot_utilization"):
        assert late[name] == plain[name]
    assert late["duration"] == pytest.approx(plain["duration"] + 0.008)


def test_tokens_are_counted_in_the_second_in_which_they_are_received() -> None:
    """Made at 0.4 s and 0.8 s, and received at 0.7 s and 1.1 s."""
    options = {"policy": "vllm", "cost_model": "constant:400"}
    made, late = (sim.simulate(trace_of([(0, 10, 2)]), request_overhead=ms, **options).summary() for ms in (0, 300))
    assert (made["max_output_tokens_per_s"], late["max_output_tokens_per_s"]) == (2, 1)


def test_a_closed_loop_turns_round_later() -> None:
    """One client, one request at a time: each answer takes 8 ms more, and so does the whole of ten."""
    trace = trace_of([(0, 10, 5)] * 10)
    options = {"max_concurrency": 1, "cost_model": "constant:2"}
    plain, late = (sim.simulate(trace, "vllm", request_overhead=ms, **options).summary() for ms in (0, 8))
    assert (plain["duration"], late["duration"]) == pytest.approx((0.100, 0.180))
    assert late["mean_e2el_ms"] == pytest.approx(18)


def test_a_profile_states_the_overhead_of_a_request(tmp_path: Any) -> None:
    from importlib.resources import files
    text = files("cost_models").joinpath("profiles/llama-3.1-8b-h100-80-bf16.yaml").read_text()
    path = tmp_path / "own.yaml"
    path.write_text(f"{text}request: {{origin: assumed, overhead_ms: 8}}\n")
    assert cost_model(path, model="llama-3.1-8b", gpu="h100-80").request_overhead == 8 * MS
    assert means(cost_model=str(path))["request_overhead_ms"] == 8
    assert means(cost_model=str(path), request_overhead=0)["request_overhead_ms"] == 0


def test_captured_graphs_make_steps_of_odd_sizes_longer() -> None:
    # A roofline that counts rows at the peak of a slow card: 33 rows cost as 40.
    options = {"gpu": "rtx-4090", "dtype": "fp8", "load": "saturated", "cost_model": "roofline"}
    trace = trace_of([(0, 16, 200)] * 33)
    ragged, padded = (sim.simulate(trace, "vllm", cuda_graph_sizes=sizes, **options) for sizes in ("none", "vllm"))
    assert padded.setup.cost.origin.endswith("decode rows padded to 51 captured sizes up to 512")
    assert padded.summary()["padding_tokens"] == 0    # rows of the engine, not positions that the scheduler gave out
    assert padded.summary()["duration"] >= ragged.summary()["duration"]
    longer = sim.simulate(trace, "vllm", cuda_graph_sizes="512", **options).summary()["duration"]
    assert longer > 1.2 * ragged.summary()["duration"]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"noise": -1}, "noise, if not profile, must be a number of at least 0, not -1"),
        ({"noise": "profil"}, "noise, if not profile, must be a number of at least 0, not 'profil'"),
        ({"request_overhead": float("inf")}, "request_overhead must be a number of at least 0, not inf"),
        (
            {"scheduler_overhead": {"vllm": (1, -1)}},
            "scheduler_overhead of vllm must be a number of at least 0, not -1",
        ),
        (
            {"scheduler_overhead": {"vllm": 3}},
            "scheduler_overhead takes two numbers, ms and ms for each running request, not 3",
        ),
        ({"scheduler_overhead": 3}, "scheduler_overhead must map names to values, not 3"),
    ],
)
def test_wrong_fields(field: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        sim.Scenario(**field)
    assert str(caught.value) == message


def ranged(tmp_path: Any, fewest: int, most: int) -> str:
    """A profile file that says with how many sequences it was measured."""
    profile = bundled_profiles()["llama-3.1-8b-h100-80-bf16"]
    path = tmp_path / "own.yaml"
    path.write_text(profile_text(replace(profile, fit=replace(profile.fit, range=Range(decodes=(fewest, most))))))
    return str(path)



@pytest.mark.parametrize("exact", [False, True])
def test_steps_far_from_the_data_are_answered_counted_and_told(tmp_path: Any, exact: bool) -> None:
    """Four sequences decode for 20 steps each after one prefill; the profile was measured up to three."""
    from simulator.remarks import remarks
    trace, options = trace_of([(0, 10, 21)] * 4), {"load": "saturated", "exact": exact}
    result = sim.simulate(trace, "vllm", cost_model=ranged(tmp_path, 1, 3), **options)
    assert result.summary()["out_of_range_steps"] == 20
    assert "20 steps outside the measured range of the cost model" in remarks(result)
    inside = sim.simulate(trace, "vllm", cost_model=ranged(tmp_path, 1, 4), **options)
    assert inside.summary()["out_of_range_steps"] == 0
    assert inside.summary()["duration"] == result.summary()["duration"]


def test_captured_graphs_may_leave_the_measured_range(tmp_path: Any) -> None:
    trace = trace_of([(0, 10, 21)] * 3)
    options = {"cost_model": ranged(tmp_path, 1, 3), "load": "saturated"}
    outside = [sim.simulate(trace, "vllm", cuda_graph_sizes=sizes, **options).summary()["out_of_range_steps"]
               for sizes in ("none", "4")]
    assert outside == [0, 20]


def test_an_idle_server_answers_after_its_prefill_and_the_stated_overheads() -> None:
    summary = sim.simulate(trace_of([(5 * MS, 100, 3)]), "vllm", cost_model="constant:7", request_overhead=8,
                           scheduler_overhead={"all": (0.5, 0.25)}).summary()
    assert summary["mean_ttft_ms"] == 7 + 0.75 + 8
    assert summary["mean_queue_time_ms"] == 0
    assert summary["mean_tpot_ms"] == 7.75


def test_a_padded_batch_pays_for_the_longest_and_a_ragged_one_for_each() -> None:
    """Contexts of 100 and 3,900: padded they read 7,800 tokens, ragged 4,000, about half."""
    cost = cost_model("regimes", model="llama-3.1-8b", gpu="h100-80")
    rows = [(0, 100, 9), (0, 3900, 9)]
    kernels = [play(rows, StaticBatching(max_batch_size=2, padded=padded), cost=cost, max_model_len=8192).record
               for padded in (True, False)]
    lasts = [int(record.ends[-1] - record.ends[-2]) for record in kernels]
    assert lasts[0] == cost.time(StepShape(2, 2 * 3907))
    assert lasts[1] == cost.time(StepShape(2, 4000 + 2 * 7))
    assert kernels[0].ends[0] > 1.5 * kernels[1].ends[0]
