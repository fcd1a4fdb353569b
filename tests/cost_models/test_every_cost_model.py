"""What every cost model promises, whatever its form."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cost_models import (
    GPUS,
    MODELS,
    Biased,
    CapturedGraphs,
    Constant,
    CostModel,
    CostModelError,
    Regimes,
    Roofline,
    StepShape,
    bundled_profiles,
    noise_for,
)
from cost_models.catalogue import PROFILED
from cost_models.fits import Range, Regime
from cost_models.graphs import VLLM_SIZES
from cost_models.profile import Host, read_profile
from cost_models.table import Table

EIGHT_B, SEVENTY_B, OPT = MODELS["llama-3.1-8b"], MODELS["llama-3.1-70b"], MODELS["opt-13b"]


@dataclass(frozen=True)
class Own(CostModel):
    """A user's model that writes ``time`` only."""

    @property
    def name(self) -> str:
        return "own"

    @property
    def origin(self) -> str:
        return "stated"

    def time(self, shape: StepShape) -> int:
        tokens = shape.decodes + sum(new for new, _ in shape.chunks)
        if tokens < 1:
            raise CostModelError("nothing to do")
        return 7 + 3 * tokens + (shape.context + sum(prior for _, prior in shape.chunks)) // 5


ROUND = read_profile(Path(__file__).with_name("round.yaml"))


TABLE = read_profile(Path(__file__).with_name("table.yaml"))


def regimes(range: Range | None = None, host: Host = ROUND.host, **changes: Regime) -> Regimes:
    """The round profile with some parts replaced."""
    assert ROUND.fit.regimes is not None
    fit = replace(ROUND.fit, range=range, regimes=replace(ROUND.fit.regimes, **changes))
    return Regimes(replace(ROUND, fit=fit, host=host))


CASES: dict[str, CostModel] = {
    "own": Own(),
    "constant": Constant(10_000_000),
    "roofline": Roofline(EIGHT_B, GPUS["h100-80"]),
    "roofline-fp8": Roofline(EIGHT_B, GPUS["l40s"], dtype="fp8", kv_dtype="fp8"),
    "roofline-tp": Roofline(SEVENTY_B, GPUS["h100-80"], tensor_parallel_size=4, host_per_seq_ms=0.01),
    "roofline-copies": Roofline(EIGHT_B, GPUS["h200"], tensor_parallel_size=16),
    "captured": CapturedGraphs(Roofline(EIGHT_B, GPUS["h100-80"]), VLLM_SIZES),
    "captured-table": CapturedGraphs(Table(TABLE), (1, 2, 4, 8, 64, 128)),
    "roofline-tied": Roofline(OPT, GPUS["a100-40"]),
    "round": regimes(),
    "ranged": regimes(range=Range(decodes=(1, 256), chunk_tokens=(1, 8192))),
    "six": regimes(decode=Regime(4, 1, 0.01, 0.25, 0.001)),
    "context-only": regimes(decode=Regime(0, per_context_token_ms=0.37e-6), host=Host("assumed", 0)),
    "all-zero": regimes(decode=Regime(0), prefill=Regime(0), mixed=Regime(0), host=Host("assumed", 0)),
    "table": Table(TABLE),
    "biased": Biased(Table(TABLE), 1.037),
    **{name: PROFILED[profile.fit.form](profile) for name, profile in bundled_profiles().items()},
}

every_model = pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())

DECODES = [StepShape(s, s * c) for s in (1, 2, 31, 32, 256) for c in (1, 16, 1000, 1024, 131072)]
PREFILLS = [StepShape(0, 0, ((n, p),)) for n in (1, 17, 512, 8192) for p in (0, 1, 4096)]
MIXED = [StepShape(s, s * 700, ((n, p), (3, 0))) for s in (1, 128) for n in (1, 2048) for p in (0, 900)]


@every_model
def test_times_are_positive_python_ints(model: CostModel) -> None:
    for shape in DECODES + PREFILLS + MIXED:
        assert type(model.time(shape)) is int
        assert model.time(shape) >= 1


@every_model
@pytest.mark.parametrize("k", [0, 1, 2, 7, 63, 64, 65, 100, 3000])
def test_decode_times_are_that_many_calls(model: CostModel, k: int) -> None:
    for shape in (StepShape(1, 1), StepShape(3, 1001), StepShape(128, 128 * 700), StepShape(0x7F, 0x7FFFF)):
        times = model.decode_times(shape, k)
        calls = [model.time(StepShape(shape.decodes, shape.context + i * shape.decodes)) for i in range(k)]
        assert times == calls
        assert all(type(time) is int for time in times)


@every_model
@pytest.mark.parametrize("growth", [0, 1, 5, 200])
def test_context_may_grow_by_other_than_a_token_a_sequence(model: CostModel, growth: int) -> None:
    for shape in (StepShape(1, 1), StepShape(7, 90), StepShape(128, 128 * 700)):
        calls = [model.time(shape._replace(context=shape.context + i * growth)) for i in range(130)]
        assert model.decode_times(shape, 130, growth) == calls


@every_model
def test_noise_round_it_keeps_its_mean_and_its_stretches(model: CostModel) -> None:
    noise, calm = noise_for(model, 0.3, seed=1), model.decode_times(StepShape(3, 300), 2000)
    drawn = noise.draw(calm, 0, StepShape(3, 300))
    assert drawn[500:600] == noise.draw(calm[500:600], 500, StepShape(3, 300))
    if min(calm) > 1000:
        assert sum(drawn) == pytest.approx(sum(calm), rel=0.03)


@every_model
def test_decode_times_beyond_64_bits(model: CostModel) -> None:
    shape = StepShape(1000, 1 << 60)
    calls = [model.time(StepShape(1000, shape.context + i * 1000)) for i in range(100)]
    assert model.decode_times(shape, 100) == calls


def grown(shape: StepShape) -> list[StepShape]:
    """The shape with a little more of each thing it has, in the same regime."""
    more = []
    if shape.decodes:
        each = -(-shape.context // shape.decodes)    # one more sequence brings a context like that of the others
        more += [shape._replace(decodes=shape.decodes + 1, context=shape.context + each)]
        more += [shape._replace(context=shape.context + 1000)]
    if shape.chunks:
        (new, prior), *rest = shape.chunks
        more += [shape._replace(chunks=(chunk, *rest)) for chunk in ((new + 64, prior), (new, prior + 500))]
        more += [shape._replace(chunks=(*shape.chunks, (5, 0)))]
    return more


@every_model
@pytest.mark.parametrize("shapes", [DECODES, PREFILLS, MIXED], ids=["decode", "prefill", "mixed"])
def test_more_work_never_takes_less_time(model: CostModel, shapes: list[StepShape]) -> None:
    for shape in shapes:
        for more in grown(shape):
            assert model.time(more) >= model.time(shape), (shape, more)


@every_model
def test_a_chunk_beside_decodes_adds_time(model: CostModel) -> None:
    for shape in DECODES:
        assert model.time(shape._replace(chunks=((256, 0),))) >= model.time(shape)


@every_model
def test_padding_and_layout_inform_but_are_not_charged_twice(model: CostModel) -> None:
    for shape in (*DECODES[:3], *PREFILLS[:3], *MIXED[:3]):
        assert model.time(shape._replace(padded=40, layout="padded")) == model.time(shape)


@every_model
@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.time(StepShape(0, 0)),
        lambda model: model.time(StepShape(0, 0, ((0, 9),))),
        lambda model: model.decode_times(StepShape(0, 0), 3),
    ],
)
def test_an_empty_step_is_refused(model: CostModel, ask: Callable[[CostModel], object]) -> None:
    if model.name != "own":
        with pytest.raises(CostModelError, match=r"^an empty step or chunk has no duration: give it"):
            ask(model)


@every_model
def test_decode_times_refuses_chunks(model: CostModel) -> None:
    with pytest.raises(CostModelError, match=r"^decode_times takes decodes only: ask time\(\)"):
        model.decode_times(StepShape(1, 10, ((5, 0),)), 2)


@every_model
def test_it_names_itself_in_one_line(model: CostModel) -> None:
    assert model.name
    assert model.origin
    assert "\n" not in model.name + model.origin


@every_model
def test_range_is_stated_or_unknown(model: CostModel) -> None:
    inside = model.cost if isinstance(model, CapturedGraphs | Biased) else model
    stated = isinstance(inside, Table) or (isinstance(inside, Regimes) and inside.profile.fit.range is not None)
    answers = {model.in_range(shape) for shape in DECODES + PREFILLS + MIXED}
    assert answers <= ({True, False} if stated else {None})


@every_model
@pytest.mark.parametrize("rows", [1, 7, 64, 300])
@pytest.mark.parametrize("chunks", [(), ((64, 0),), ((500, 3000),)])
def test_a_range_has_no_gaps(model: CostModel, rows: int, chunks: tuple[tuple[int, int], ...]) -> None:
    answers = [model.in_range(StepShape(rows, rows * each, chunks)) for each in (1, 2, 8, 99, 1000, 9000, 10 ** 6)]
    inside = [at for at, answer in enumerate(answers) if answer]
    assert inside == list(range(inside[0], inside[-1] + 1)) if inside else True not in answers
