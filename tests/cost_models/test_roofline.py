import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cost_models import GPUS, MODELS, CostModelError, GpuSpec, ModelSpec, Roofline, StepShape, kv_pool

MS = 1_000_000
EIGHT_B = MODELS["llama-3.1-8b"]

# body 2 * (8 * 24 + 8 * 8 + 3 * 8 * 16) = 1280 parameters, head 800, norms 40, embeddings 2 * 800: 2920
TOY = ModelSpec("toy", 2, 8, 4, 2, 2, 16, 100, 64)
# 1 byte a ns and 2 FLOP a ns
SLOW = GpuSpec("slow", 1e9, 10**9, 1e9, 2e9, 4e9, 1e9, "made up")
IDEAL = {"bandwidth_efficiency": 1.0, "flops_efficiency": 1.0, "link_efficiency": 1.0, "all_reduce_us": 0.0,
         "host_ms": 0.0}


def ideal(**knobs: object) -> Roofline:
    return Roofline(TOY, SLOW, **{**IDEAL, **knobs})  # type: ignore[arg-type]


def test_the_toy_is_as_computed_by_hand() -> None:
    assert TOY.body_parameters == 1152
    assert TOY.head_parameters == 800
    assert TOY.parameters == 1152 + 1600 + 40
    assert TOY.read_bytes() == 2 * (1152 + 800 + 40)
    assert TOY.kv_bytes_per_token() == 2 * 2 * 2 * 2 * 2


@pytest.mark.parametrize(
    ("shape", "ns"),
    [
        # weights 3984 bytes; a row 2 * 1952 FLOP = 1952 ns: two rows hide behind the weights, three do not;
        # 32 bytes = 32 ns a token of context (its 64 FLOP take as long)
        (StepShape(1, 10), 3984 + 320),
        (StepShape(2, 10), 3984 + 320),
        (StepShape(3, 10), 3 * 1952 + 320),
        # a chunk of 10: 10 * 1152 + 800; attention 10 * 10 * 32 FLOP / 2 = 1600 ns against 320 bytes
        (StepShape(0, 0, ((10, 0),)), 10 * 1152 + 800 + 1600),
        # one token after 20: (1 + 40) * 16 = 656 ns of arithmetic against 21 * 32 = 672 ns of reading
        (StepShape(0, 0, ((1, 20),)), 3984 + 672),
        # the weights are read once for both
        (StepShape(1, 10, ((1, 0),)), 3984 + 320 + 32),
        (StepShape(2, 10, ((10, 0),)), 12 * 1152 + 3 * 800 + 320 + 1600),
    ],
)
def test_each_part_by_hand(shape: StepShape, ns: int) -> None:
    assert ideal().time(shape) == ns


def test_efficiencies_and_host() -> None:
    shape = StepShape(1, 10)
    assert ideal(bandwidth_efficiency=0.5).time(shape) == 2 * (3984 + 320)
    assert ideal(flops_efficiency=0.25).time(shape) == 4 * 1952 + 4 * 320
    assert ideal(host_ms=0.001, host_per_seq_ms=0.0005).time(StepShape(2, 0)) == 3984 + 1000 + 1000
    assert ideal(host_ms=1.5).time(shape) == 1_500_000 + 4304


def test_fp8_halves_the_layers_and_doubles_their_rate() -> None:
    fp8 = ideal(dtype="fp8")
    assert fp8.time(StepShape(1, 0)) == 1152 + 2 * 840
    # four rows: 4 * (1152 / 2 + 800)
    assert fp8.time(StepShape(4, 0)) == 4 * 1376
    assert ideal(kv_dtype="fp8", flops_efficiency=1.0).time(StepShape(1, 10)) == 3984 + 320
    assert dataclasses.replace(fp8, gpu=dataclasses.replace(SLOW, fp8_flops=None)).time(StepShape(4, 0)) == 4 * 1952


def test_tensor_parallel_divides_all_and_adds_all_reduces() -> None:
    two = ideal(tensor_parallel_size=2, all_reduce_us=1.0)
    # halves, four all-reduces of 1000 ns, and 4 * 2 * (1/2) * 8 * 2 bytes = 64 ns a row over the link
    assert two.time(StepShape(1, 10)) == 1992 + 160 + 4000 + 64
    assert two.time(StepShape(0, 0, ((10, 0),))) == 5760 + 400 + 800 + 4000 + 640


def test_more_gpus_than_kv_heads_hold_copies() -> None:
    # TOY has 2 KV heads: on 4 GPUs each GPU holds one, as on 2, and half of the queries
    four = TOY.laid_out(4)
    assert (four.heads, four.kv_heads) == (4, 4)
    assert four.kv_bytes_per_token() == 2 * TOY.kv_bytes_per_token()
    assert EIGHT_B.laid_out(8) == EIGHT_B
    # 16 GPUs together read twice the keys and values of 8, so that a token of context costs no less
    eight, sixteen = (Roofline(EIGHT_B, GPUS["h100-80"], tensor_parallel_size=size) for size in (8, 16))
    assert sixteen.context_fs == eight.context_fs
    assert sixteen.decode_fs(1) < eight.decode_fs(1)
    assert kv_pool("llama-3.1-8b", "h100-80", tensor_parallel_size=16).kv_bytes_per_token == 2 * 131072


MEASURED = Path(__file__).parents[3] / "shared/measured/vidur"


@pytest.mark.parametrize(("gpu", "reached"), [("a100-80", 0.55), ("h100-80", 0.75)])
def test_all_reduces_as_measured(gpu: str, reached: float) -> None:
    """The medians of Vidur's profiles: a line through those above 1 MB, and what a small one takes."""
    path = MEASURED / f"{gpu.split('-')[0]}_dgx_all_reduce.csv.gz"
    if not path.exists():
        pytest.skip("the measured all-reduces are not at hand")
    pd = pytest.importorskip("pandas")
    rows = pd.read_csv(path).rename(columns={"time_stats.all_reduce.median": "ms"})
    for ranks in (2, 4, 8):
        inside = rows[(rows.num_workers == ranks) & (rows.devices_per_node == ranks)]
        ms = inside.groupby("size").ms.median()
        large = ms[ms.index >= 10**6]
        per_byte, _ = np.polyfit(large.index, large, 1, w=1 / large) * 1e-3
        sent = 2 * (ranks - 1) / ranks
        assert sent / per_byte / GPUS[gpu].link_bandwidth == pytest.approx(reached, rel=0.08)
        assert 0.5 <= ms[ms.index <= 2**17].median() * 1e3 / Roofline(EIGHT_B, GPUS[gpu]).all_reduce_us <= 2.5


def test_defaults_are_stated() -> None:
    model = Roofline(EIGHT_B, GPUS["h100-80"])
    assert model.origin == (
        "specifications of llama-3.1-8b on 1 x h100-80 (bf16, KV bf16); "
        "assumed: 0.8 of peak bandwidth, 0.6 of peak FLOP/s, host 1.5 ms a step"
    )
    weights, context = EIGHT_B.read_bytes(), 1024 * 131072
    assert model.time(StepShape(1, 1024)) == pytest.approx((weights + context) / 3.35e12 / 0.8 * 1e9 + 1.5e6)


# Model, GPU, number of GPUs; decode floors in ms of 1, 32 and 256 sequences at 1024 tokens of context.
FLOORS = [
    ("llama-3.1-8b", "a100-40", 1, (9.7, 12.4, None)),
    ("llama-3.1-8b", "a100-80", 1, (7.4, 9.5, 24.2)),
    ("llama-3.1-8b", "h100-80", 1, (4.5, 5.8, 14.7)),
    ("llama-3.1-8b", "h200", 1, (3.2, 4.0, 10.3)),
    ("llama-3.1-8b", "b200", 1, (1.9, 2.4, 6.2)),
    ("llama-3.1-70b", "h100-80", 4, (10.4, 11.2, 16.8)),
    ("llama-3.1-70b", "h200", 2, (14.5, 15.6, 23.4)),
    ("llama-3.1-70b", "b200", 2, (8.7, 9.4, 14.1)),
    ("opt-13b", "a100-40", 1, (17.1, None, None)),
    ("opt-13b", "a100-80", 1, (13.0, 25.8, None)),
    ("opt-13b", "h200", 1, (5.5, 10.9, None)),
]


@pytest.mark.parametrize(("model", "gpu", "gpus", "floors"), FLOORS)
def test_decode_floors(model: str, gpu: str, gpus: int, floors: tuple[float | None, ...]) -> None:
    roofline = Roofline(MODELS[model], GPUS[gpu], tensor_parallel_size=gpus)
    for decodes, ms in zip((1, 32, 256), floors, strict=True):
        if ms is not None:
            # as printed: to the last digit
            assert roofline.floor(StepShape(decodes, decodes * 1024)) / MS == pytest.approx(ms, abs=0.051)


def test_measured_decode_kernels_lie_between_1_and_2_3_floors() -> None:
    measured = {"a100-80": (11.9, 15.6, 43.7), "h100-80": (6.2, 8.3, 19.6), "b200": (3.5, 4.2, 9.2)}
    for gpu, times in measured.items():
        model = Roofline(EIGHT_B, GPUS[gpu])
        for decodes, ms in zip((1, 32, 256), times, strict=True):
            assert 1.0 <= ms * MS / model.floor(StepShape(decodes, decodes * 1024)) <= 2.3


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize(("model", "gpus"), [("llama-3.1-8b", 1), ("llama-3.1-70b", 4), ("opt-13b", 2)])
def test_no_step_beats_its_floor(model: str, gpu: str, gpus: int, dtype: str) -> None:
    roofline = Roofline(MODELS[model], GPUS[gpu], dtype=dtype, tensor_parallel_size=gpus)
    ideal = dataclasses.replace(roofline, **IDEAL)
    shapes = [StepShape(1, 9), StepShape(300, 3 * 10**6), StepShape(0, 0, ((8192, 0),))]
    for shape in [*shapes, StepShape(64, 64000, ((512, 4096), (7, 0)))]:
        # the parts of time() are rounded to femtoseconds each
        assert roofline.time(shape) > ideal.time(shape) * (1 + 1e-6) >= roofline.floor(shape)
    # a step that only reads the weights reaches it
    weights = StepShape(1, 0)
    assert ideal.time(weights) == pytest.approx(roofline.floor(weights), rel=1e-3 if gpus == 1 else 0.02)


def test_the_floor_of_an_empty_step_is_refused() -> None:
    with pytest.raises(CostModelError, match=r"^an empty step or chunk has no duration"):
        ideal().floor(StepShape(0, 0))


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"dtype": "fp4"}, "unknown dtype 'fp4': did you mean 'fp8'? (known: bf16, fp8)"),
        ({"kv_dtype": "int8"}, "unknown kv_dtype 'int8' (known: bf16, fp8)"),
        ({"bandwidth_efficiency": 0}, "bandwidth_efficiency must be above 0 and at most 1, got 0"),
        ({"flops_efficiency": 1.5}, "flops_efficiency must be above 0 and at most 1, got 1.5"),
        ({"host_ms": -1}, "host_ms must be a number of at least 0, got -1"),
        ({"all_reduce_us": float("nan")}, "all_reduce_us must be a number of at least 0, got nan"),
        (
            {"tensor_parallel_size": 3},
            "tensor_parallel_size 3 does not deal the 32 heads and 8 KV heads of llama-3.1-8b evenly "
            "(possible: 1, 2, 4, 8, 16, 32)",
        ),
        (
            {"tensor_parallel_size": 0},
            "tensor_parallel_size must be a whole number of at least 1, got 0",
        ),
    ],
)
def test_wrong_knobs(knobs: dict[str, object], message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        Roofline(EIGHT_B, GPUS["h100-80"], **knobs)  # type: ignore[arg-type]
    assert str(caught.value) == message
