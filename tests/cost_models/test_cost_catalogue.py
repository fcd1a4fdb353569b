import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import cost_models
from cost_models import (
    GPUS,
    MODELS,
    Constant,
    CostModelError,
    Regimes,
    Roofline,
    StepShape,
    available_cost_models,
    bundled_profiles,
    cost_model,
)

H100 = {"model": "llama-3.1-8b", "gpu": "h100-80"}


@pytest.mark.parametrize("name", ["auto", "regimes", "llama-3.1-8b-h100-80-bf16"])
def test_the_profile_of_exactly_this_layout(name: str) -> None:
    model = cost_model(name, **H100)  # type: ignore[arg-type]
    assert isinstance(model, Regimes)
    assert model.name == "llama-3.1-8b-h100-80-bf16"


def test_auto_finds_the_profile_of_four_gpus() -> None:
    model = cost_model(model="llama-3.1-70b", gpu="b200", tensor_parallel_size=4)
    assert model.name == "llama-3.1-70b-b200-tp4-bf16"


@pytest.mark.parametrize(
    "layout",
    [
        {"model": "llama-3.1-8b", "gpu": "a100-40"},
        {"model": "llama-3.1-8b", "gpu": "h100-80", "dtype": "fp8"},
        {"model": "llama-3.1-8b", "gpu": "h100-80", "kv_dtype": "fp8"},
        {"model": "llama-3.1-8b", "gpu": "h100-80", "tensor_parallel_size": 2},
        {"model": "llama-3.1-70b", "gpu": "h100-80", "tensor_parallel_size": 8},
        {"model": dataclasses.replace(MODELS["llama-3.1-8b"], name="own", layers=16), "gpu": "h100-80"},
        {"model": "llama-3.1-8b", "gpu": dataclasses.replace(GPUS["h100-80"], name="own")},
    ],
)
def test_auto_falls_back_to_roofline(layout: dict[str, object]) -> None:
    model = cost_model("auto", **layout)  # type: ignore[arg-type]
    assert isinstance(model, Roofline)
    assert model == cost_model("roofline", **layout)  # type: ignore[arg-type]
    assert model.tensor_parallel_size == layout.get("tensor_parallel_size", 1)
    assert (model.dtype, model.kv_dtype) == (layout.get("dtype", "bf16"), layout.get("kv_dtype", "bf16"))


@pytest.mark.parametrize(
    ("name", "ns"),
    [("constant", 10_000_000), ("constant:12.5", 12_500_000), ("constant:1e-6", 1)],
)
def test_constant(name: str, ns: int) -> None:
    model = cost_model(name, **H100)  # type: ignore[arg-type]
    assert model == Constant(ns)
    assert model.time(StepShape(0, 0, ((100, 0),))) == ns


def test_a_profile_of_ones_own() -> None:
    path = Path(__file__).with_name("round.yaml")
    for name in (path, str(path)):
        assert cost_model(name, **H100).name == "round"  # type: ignore[arg-type]


LAYOUTS = ", ".join(profile.layout for profile in bundled_profiles().values() if profile.fit.regimes)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "rofline",
            {},
            "unknown cost model 'rofline': did you mean 'roofline'? "
            f"(known: auto, roofline, regimes, table, aiconfigurator, constant, {', '.join(bundled_profiles())})",
        ),
        ("constant:", {}, "'constant:': give milliseconds above 0, as in constant:12.5"),
        ("constant:fast", {}, "'constant:fast': give milliseconds above 0, as in constant:12.5"),
        ("constant:0", {}, "'constant:0': give milliseconds above 0, as in constant:12.5"),
        ("constant:-3", {}, "'constant:-3': give milliseconds above 0, as in constant:12.5"),
        ("constant:inf", {}, "'constant:inf': give milliseconds above 0, as in constant:12.5"),
        ("constant:nan", {}, "'constant:nan': give milliseconds above 0, as in constant:12.5"),
        (
            "regimes",
            {"gpu": "a100-40"},
            "no bundled profile for llama-3.1-8b on 1 x a100-40 (bf16, KV bf16) has the form 'regimes': use 'auto' or "
            "'roofline' "
            f"(known: {LAYOUTS})",
        ),
        (
            "llama-3.1-8b-h100-80-bf16",
            {"gpu": "h200", "dtype": "fp8"},
            "profile 'llama-3.1-8b-h100-80-bf16' is for llama-3.1-8b on 1 x h100-80 (bf16, KV bf16), "
            "not llama-3.1-8b on 1 x h200 (fp8, KV bf16): use 'auto' instead",
        ),
        (
            "auto",
            {"model": "llama-3.1-9b"},
            "unknown model 'llama-3.1-9b': did you mean 'llama-3.1-8b'? "
            "(known: llama-3.1-8b, llama-3.1-70b, llama-2-7b, llama-2-70b, opt-13b, mistral-7b, qwen2.5-7b)",
        ),
        ("constant", {"dtype": "int4"}, "unknown dtype 'int4' (known: bf16, fp8)"),
        (
            "constant",
            {"tensor_parallel_size": 12},
            "tensor_parallel_size 12 does not deal the 32 heads and 8 KV heads of llama-3.1-8b evenly "
            "(possible: 1, 2, 4, 8, 16, 32)",
        ),
        ("absent.yaml", {}, "absent.yaml: No such file or directory"),
    ],
)
def test_wrong_names(name: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(CostModelError) as caught:
        cost_model(name, **{**H100, **changes})  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize("step_ns", [0, -1, 1.5, True])
def test_a_constant_is_a_whole_number_of_ns(step_ns: int) -> None:
    with pytest.raises(CostModelError) as caught:
        Constant(step_ns)
    assert str(caught.value) == f"step_ns must be a whole number of at least 1 ns, got {step_ns!r}"


def test_the_listing_has_every_name_and_every_name_works() -> None:
    rows = available_cost_models()
    forms = ["auto", "roofline", "regimes", "table", "aiconfigurator", "constant"]
    assert [row.name for row in rows] == [*forms, *bundled_profiles()]
    for row in rows:
        if row.name == "aiconfigurator":
            continue    # its package need not be here
        gpu = row.gpu or ("rtx-4090" if row.name == "table" else "h100-80")
        layout = {"model": row.model or "llama-3.1-8b", "gpu": gpu}
        size = row.tensor_parallel_size or 1
        assert cost_model(row.name, **layout, tensor_parallel_size=size)  # type: ignore[arg-type]


def test_the_listing_states_errors() -> None:
    row = next(row for row in available_cost_models() if row.name == "llama-3.1-8b-h100-80-bf16")
    assert (row.form, row.dtype, row.kv_dtype, row.tensor_parallel_size) == ("regimes", "bf16", "bf16", 1)
    assert row.errors is not None
    assert row.errors.decode is not None
    assert (row.errors.decode.mape_percent, row.errors.decode.held_out, row.errors.mixed) == (2.42, True, None)
    assert row.held_against == "kernels"
    assert row.range is not None
    assert row.range.chunk_tokens == (1, 8192)
    assert row.origin == (
        "fitted to steps composed by aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA; h100_sxm, vllm kernels), "
        "kernels only (2026-11-29); mixed steps put together by factors from other GPUs; host 1.5 ms a step assumed"
    )


def test_import_is_light() -> None:
    heavy = ("pandas", "matplotlib", "torch", "scipy", "simpy", "simulator", "traces")
    code = f"import sys, cost_models; print([name for name in {heavy!r} if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_everything_exported_exists_and_is_documented() -> None:
    for name in cost_models.__all__:
        assert name in ("MODELS", "GPUS") or getattr(cost_models, name).__doc__
