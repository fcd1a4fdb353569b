"""The kernel tables of aiconfigurator-core: asked once, kept, and then a table like any other."""

import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cost_models import CostModelError, StepShape, Table, cost_model
from cost_models import aiconfigurator as aic
from cost_models.cache import cached, directory

MS = 1_000_000
needs_package = pytest.mark.skipif(find_spec("aiconfigurator_core") is None,
                                   reason="aiconfigurator-core is not installed: pip install 'batchsim[aic]'")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Engine:
    """Stands in for the package: 32 layers, each kernel a plain function of its sizes."""

    def decode_step_per_op(self, sequences: int, context: int, osl: int) -> list[tuple[str, float, float, str]]:
        return [("generation_qkv_gemm", 1 + sequences / 100, 0, ""), ("generation_ar_1", 0.0, 0, ""),
                ("generation_attention", sequences * context / 1e4, 0, ""), ("generation_logits_gemm", 0.5, 0, "")]

    def run_static_per_op(self, *, isl: int, prefix: int, **rest: Any) -> tuple[list[Any], list[Any]]:
        new = isl - prefix
        return [("context_qkv_gemm", 1 + new / 100, 0, ""), ("context_attention", new * isl / 1e6, 0, ""),
                ("context_embedding", 0.0, 0, ""), ("context_ar_2", 0.0, 0, "")], []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Notes each deployment that the package is asked about, which the stand-in answers."""
    calls: list[tuple[Any, ...]] = []

    def engine(*deployment: Any) -> Engine:
        calls.append(deployment)
        return Engine()

    monkeypatch.setattr(aic, "version", lambda name: "0.12.0")
    monkeypatch.setattr(aic, "_engine", engine)
    return calls


def test_the_parts_of_a_step_are_sorted_and_added(asked: list[Any]) -> None:
    model = cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80")
    assert isinstance(model, Table)
    # host 1.5, matrices 1 + 64 / 100, attention 64 * 1024 / 1e4, head 0.5
    assert model.time(StepShape(64, 64 * 1024)) == pytest.approx((1.5 + 1.64 + 6.5536 + 0.5) * MS, abs=100)
    # matrices 1 + 1024 / 100, attention 1024 * 1280 / 1e6, head 0.5
    assert model.time(StepShape(0, 0, ((1024, 256),))) == pytest.approx((1.5 + 11.24 + 1.31072 + 0.5) * MS, abs=100)
    assert model.origin == ("aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA; h100_sxm, vllm kernels), kernels only "
                            "(release 0.12.0); mixed steps put together by factors from other GPUs; host 1.5 ms a "
                            "step assumed")
    assert (model.in_range(StepShape(512, 512)), model.in_range(StepShape(513, 513))) == (True, False)


def test_the_package_is_asked_once(asked: list[Any]) -> None:
    first, again = (cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80") for _ in range(2))
    assert first == again
    assert len(asked) == 1
    cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80", kv_dtype="fp8")
    assert len(asked) == 2


@pytest.mark.parametrize("left", ["", "{", '{"schema_version": 1}', "[]"])
def test_a_spoilt_cache_is_asked_for_again(asked: list[Any], left: str) -> None:
    cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80")
    stored, = directory().iterdir()
    stored.write_text(left)
    cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80")
    assert len(asked) == 2
    cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80")
    assert len(asked) == 2


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached("x.json", lambda data: data, lambda: {"a": 1}) == {"a": 1}


def test_what_cannot_be_put_in_its_place_is_not_left_beside_it() -> None:
    (directory() / "x.json").mkdir(parents=True)
    assert cached("x.json", lambda data: data, lambda: {"a": 1}) == {"a": 1}
    assert [entry.name for entry in directory().iterdir()] == ["x.json"]


def test_the_home_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert directory() == Path.home() / ".cache" / "batchsim"


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(aic, "version", absent)
    with pytest.raises(CostModelError) as caught:
        cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80")
    assert str(caught.value) == "'aiconfigurator' needs an extra package: pip install 'batchsim[aic]'"


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"model": "opt-13b", "gpu": "h200"}, "unknown model of aiconfigurator 'opt-13b' (known: llama-3.1-8b, "),
        (
            {"model": "llama-3.1-8b", "gpu": "a100-40"},
            "unknown GPU of aiconfigurator 'a100-40': did you mean 'a100-80'?",
        ),
    ],
)
def test_what_the_package_has_no_data_of(asked: list[Any], layout: dict[str, str], message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        cost_model("aiconfigurator", **layout)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


class Unfit(Engine):
    """An engine whose tables lack something."""

    def decode_step_per_op(self, sequences: int, context: int, osl: int) -> list[tuple[str, float, float, str]]:
        raise KeyError(f"no kernel of\n  {sequences} sequences")


@pytest.mark.parametrize("engine", [Unfit(), ValueError("no tables of\n  this GPU"), Engine()],
                         ids=lambda each: type(each).__name__)
def test_what_the_package_raises_is_one_line(engine: Engine | Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is stood in for whole: what it is asked for, and what it answers."""
    asked: list[Any] = []

    def compile(*deployment: str, **given: Any) -> Engine:
        asked.extend((*deployment, given["tp_size"], given["gemm_quant_mode"], given["kvcache_quant_mode"]))
        if isinstance(engine, Exception):
            raise engine
        return engine

    for name in ("aiconfigurator_core", "aiconfigurator_core.sdk", "aiconfigurator_core.sdk.engine"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["aiconfigurator_core.sdk.engine"].EngineHandle = SimpleNamespace(compile=compile)  # type: ignore[attr-defined]
    monkeypatch.setattr(aic, "version", lambda name: "0.12.0")
    found = answer_or_complaint()
    assert asked == ["meta-llama/Meta-Llama-3.1-8B", "h100_sxm", "vllm", 2, "bfloat16", "fp8"]
    assert found == {Unfit: "no data: 'no kernel of\\n 1 sequences'", ValueError: "no data: no tables of this GPU",
                     Engine: "a table"}[type(engine)]


def answer_or_complaint() -> str:
    """What comes of asking for one deployment, without the name of it."""
    try:
        cost_model("aiconfigurator", model="llama-3.1-8b", gpu="h100-80", kv_dtype="fp8", tensor_parallel_size=2)
    except CostModelError as error:
        return str(error).replace("aiconfigurator has no data of llama-3.1-8b on 2 x h100-80 (bf16, KV fp8)", "no data")
    return "a table"


@needs_package
@pytest.mark.parametrize(
    ("layout", "ms"),
    [
        ({"model": "llama-3.1-8b", "gpu": "a100-80"}, (11.9, 15.6, 43.7)),
        ({"model": "llama-3.1-8b", "gpu": "h100-80"}, (6.2, 8.3, 19.6)),
        ({"model": "llama-3.1-8b", "gpu": "h200"}, (4.9, 6.3, 15.4)),
        ({"model": "llama-3.1-8b", "gpu": "b200"}, (3.5, 4.2, 9.2)),
    ],
)
def test_decode_kernels_of_the_package(layout: dict[str, Any], ms: tuple[float, ...]) -> None:
    """As known of the package: 1, 32 and 256 sequences at 1,024 tokens of context."""
    model = cost_model("aiconfigurator", **layout)
    for decodes, expected in zip((1, 32, 256), ms, strict=True):
        assert model.time(StepShape(decodes, decodes * 1024)) / MS - 1.5 == pytest.approx(expected, abs=0.06)


@needs_package
def test_the_table_is_what_the_package_says_between_its_knots() -> None:
    model = cost_model("aiconfigurator", model="llama-3.1-70b", gpu="h200", dtype="fp8", kv_dtype="fp8",
                       tensor_parallel_size=4)
    assert isinstance(model, Table)
    from cost_models import GPUS, MODELS
    engine = aic._engine(MODELS["llama-3.1-70b"], GPUS["h200"], "fp8", "fp8", 4)
    for sequences, context in ((3, 700), (45, 1500), (300, 3000)):
        package = sum(op[1] for op in engine.decode_step_per_op(sequences, context, 2))
        assert model.time(StepShape(sequences, sequences * context)) / MS - 1.5 == pytest.approx(package, rel=0.05)
    for new, prior in ((100, 0), (1900, 700), (5000, 20000)):
        ops, _ = engine.run_static_per_op(batch_size=1, isl=new + prior, osl=1, prefix=prior, mode="static_ctx")
        package = sum(op[1] for op in ops)
        # the package's own matrices saw between measured sizes: 44 ms at 1,536 tokens, 59 at 1,600, 52 at 1,792
        assert model.time(StepShape(0, 0, ((new, prior),))) / MS - 1.5 == pytest.approx(package, rel=0.1)
