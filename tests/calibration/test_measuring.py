"""What is timed is what the grid says, pass by pass, and an interrupted calibration goes on where it stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'calibration'")

from small_grid import MINI

from calibration import run
from calibration.grid import CPU, CPU_QUICK, GPU, GPU_QUICK, PASSES, Grid, Point, pages_of, rows_of, tokens_of
from calibration.machine import Machine
from calibration.measuring import drift, raw_rows
from calibration.run import Job
from calibration.samples import Sample, SampleFile
from calibration.shard import TINY, Shard
from calibration.timing import CallTimer, Work, timed
from cost_models import MODELS, CostModelError
from simulator.errors import InputError


def mini(**options: int) -> Job:
    return replace(run.job("tiny", "cpu", quick=True, **options), grid=MINI)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("grid", [GPU, GPU_QUICK, CPU, CPU_QUICK], ids=["gpu", "gpu quick", "cpu", "cpu quick"])
def test_a_grid_is_whole(grid: Grid) -> None:
    points = grid.points()
    assert len(points) == len(set(points))
    for axis in (grid.tokens, grid.heads, grid.sequences, grid.context, grid.chunk, grid.prior):
        assert list(axis) == sorted(set(axis))
    kinds = [(bool(chunk), bool(sequences)) for chunk, _, sequences, _ in grid.steps]
    assert all(kinds.count(kind) >= 4 for kind in ((False, True), (True, False)))
    assert kinds.count((True, True)) >= 6
    assert PASSES * grid.repeats >= 20


def test_the_grid_of_a_gpu_has_the_edges_of_tiles() -> None:
    assert 38 <= len(GPU.tokens) <= 40
    assert {(edge, edge + 8) for edge in (64, 128, 256, 1024)} <= set(zip(GPU.tokens, GPU.tokens[1:], strict=False))
    assert 30 <= len(GPU.mixed) <= 60


def test_what_memory_does_not_hold_is_left_out_and_axes_stay_whole() -> None:
    small = GPU.within(tokens=300_000, step_tokens=50_000)
    assert small.sequences == GPU.sequences
    assert small.context == (128, 512, 1024)
    assert small.prior == GPU.prior
    assert max(map(tokens_of, (Point("step", dims) for dims in small.steps))) <= 50_000
    assert set(small.steps) < set(GPU.steps)


def test_rows_tokens_and_pages_of_a_point() -> None:
    assert rows_of(Point("step", (16, 100, 2, 50))) == [(1, 51), (1, 51), (16, 116)]
    assert rows_of(Point("decode", (2, 50))) == [(1, 51), (1, 51)]
    assert rows_of(Point("prefill", (16, 0))) == [(16, 16)]
    assert pages_of(Point("mixed", (16, 100, 2, 50)), 16) == 4 + 4 + 8
    assert tokens_of(Point("decode", (4, 100))) == 404
    assert tokens_of(Point("prefill", (16, 100))) == 116
    assert tokens_of(Point("mixed", (16, 100, 4, 100))) == 520


def test_every_point_is_timed_in_every_pass(tmp_path: Path) -> None:
    found = run.calibrate(mini(), tmp_path / "samples")
    assert [row.n for row in found.profile.raw] == [PASSES * MINI.repeats] * (len(MINI.points()) + 2)
    assert {(row.kernel, row.dims) for row in found.profile.raw} == {*MINI.points(), *MINI.ceilings}
    assert all(0 < row.min_us <= row.median_us and row.iqr_us >= 0 for row in found.profile.raw)
    assert found.profile.raw[0].bytes == 2 * MINI.copy_bytes
    order = [json.loads(line) for line in (tmp_path / "samples").read_text().splitlines()[1:]]
    first, second = ([line["kernel"] for line in order if line["pass"] == turn] for turn in (0, 1))
    assert first[:2] == second[:2] == ["copy", "matmul"]
    assert sorted(first) == sorted(second)
    assert first != second


def test_an_interrupted_calibration_goes_on_where_it_stopped(tmp_path: Path) -> None:
    kept = tmp_path / "samples"

    def interrupt(done: int, total: int) -> None:
        if done == 20:
            raise Interrupted

    with pytest.raises(Interrupted):
        run.calibrate(mini(), kept, progress=interrupt)
    before = kept.read_text()
    assert before.count("\n") == 21
    kept.write_text(before + '{"pass": 0, "ker')    # the machine went down while a line was written
    found = run.calibrate(mini(), kept, resume=True)
    assert kept.read_text().startswith(before)
    assert len(kept.read_text().splitlines()) == 1 + PASSES * (len(MINI.points()) + 2)
    assert len(found.profile.raw) == len(MINI.points()) + 2


def test_what_has_all_been_timed_is_not_timed_again(tmp_path: Path) -> None:
    kept, told = tmp_path / "samples", []
    run.calibrate(mini(), kept)
    before = kept.read_text()
    found = run.calibrate(mini(), kept, resume=True, progress=lambda *counts: told.append(counts))
    assert kept.read_text() == before
    assert [row.n for row in found.profile.raw] == [PASSES * MINI.repeats] * (len(MINI.points()) + 2)
    assert told[-1] == (PASSES * (len(MINI.points()) + 2),) * 2


def test_a_device_whose_memory_runs_out_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nA page of advice\n")

    monkeypatch.setattr(run, "measure", measure)
    with pytest.raises(InputError) as error:
        run.calibrate(mini(), tmp_path / "samples")
    assert str(error.value) == (
        "memory ran out (CUDA out of memory. Tried to allocate 2.00 GiB.): end other programs that hold memory of the "
        "device, or give a smaller --model; --resume keeps what has been timed")


def test_only_the_same_calibration_can_be_gone_on_with(tmp_path: Path) -> None:
    kept = tmp_path / "samples"
    with pytest.raises(InputError, match="nothing to resume"):
        run.calibrate(mini(), kept, resume=True)
    with SampleFile(kept, {"seed": 0}):
        pass
    with pytest.raises(InputError, match="begun with model None, not 'tiny'"):
        run.calibrate(mini(), kept, resume=True)
    kept.write_text("not json\n")
    with pytest.raises(InputError, match="holds no samples"):
        run.calibrate(mini(), kept, resume=True)


def test_what_is_faster_than_its_bytes_allow_is_flagged_on_a_gpu() -> None:
    """1000 bytes a microsecond are copied, so 9000 bytes take 9 us; 90% of that is allowed."""
    gpu = Machine(torch.device("cuda", 0), "bf16", 1 << 30, 0)
    found = {Point("copy", (1000,)): [Sample((1.0, 1.0), 1000, 0)], Point("qkv", (1,)): [Sample((8.0, 8.0), 9000, 5)],
             Point("o", (1,)): [Sample((8.2, 8.2), 9000, 5)]}
    flags = {row.kernel: row.flag for row in raw_rows(found, gpu)}
    assert flags == {"copy": None, "o": None, "qkv": "faster than its bytes allow: it read a cache"}
    assert not any(row.flag for row in raw_rows(found, Machine(torch.device("cpu"), "fp32", 1 << 30, 0)))


def test_drift_is_how_far_the_passes_lie_apart() -> None:
    steady, drifting = [Sample((10.0,), 1, 0)] * 3, [Sample((us,), 1, 0) for us in (10.0, 12.0, 11.0)]
    assert drift({Point("o", (1,)): steady}) == 0
    assert drift({Point("o", (1,)): drifting}) == pytest.approx(0.2)


def test_a_timer_counts_what_was_asked_and_warms_up_before() -> None:
    calls: list[str] = []
    work = Work([lambda: calls.append("a"), lambda: calls.append("b")], 1)
    assert len(CallTimer(torch.device("cpu")).samples(work, 3)) == 3
    assert "".join(calls) == "ab" + "aba"
    assert timed(lambda: sum(range(1000)), torch.device("cpu")) > 0


def test_what_cannot_be_calibrated_is_refused_before_any_work() -> None:
    with pytest.raises(InputError, match=r"llama-3.1-8b is too large to be timed on a CPU \(8.0 billion"):
        run.job("llama-3.1-8b", "cpu")
    with pytest.raises(CostModelError, match="opt-13b is not shaped like Llama"):
        run.job("opt-13b", "cpu")
    with pytest.raises(CostModelError, match="unknown model 'lama'"):
        run.job("lama", "cpu")
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        run.job("tiny", "gpu")


def test_a_gpu_without_room_for_the_weights_is_refused() -> None:
    gpu = Machine(torch.device("cuda", 0), "bf16", 25_300_000_000, 72 << 20)
    with pytest.raises(InputError, match=r"its weights take 141.1 GB and timing 4 GB more, the device has 25.3 GB"):
        run._fitting(GPU, Shard.of(MODELS["llama-3.1-70b"]), gpu, "llama-3.1-70b")
    fits = run._fitting(GPU, Shard.of(MODELS["llama-3.1-8b"]), gpu, "llama-3.1-8b")
    assert fits.context[-1] < GPU.context[-1]
    large = Machine(torch.device("cuda", 0), "bf16", 150_100_000_000, 50 << 20)
    assert run._fitting(GPU, Shard.of(MODELS["llama-3.1-8b"]), large, "llama-3.1-8b") == GPU


def test_the_tiny_model_is_nobody_elses() -> None:
    assert TINY.name not in MODELS
