"""What a cost model says, over batch and context: the numbers are the model's own, the floors those of the roofline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cost_models import CostModelError, StepShape, bundled_profiles, cost_model
from cost_models.fits import Range
from cost_models.writing import profile_text
from simulator.plots import costs_figure
from simulator.studies.costs import CONTEXTS, SEQUENCES, cost_sheet

MS = 1e6


@pytest.mark.parametrize("name", ["auto", "roofline", "constant:7", *bundled_profiles()])
def test_prices_are_those_of_the_model_and_above_their_floors(name: str) -> None:
    sheet = cost_sheet(name)
    prices = list(sheet.prices())
    assert len(prices) == len(SEQUENCES) * len(CONTEXTS) + 12
    for price in prices:
        shape = StepShape(price.sequences, price.sequences * price.context,
                          ((price.tokens, price.prior),) if price.tokens else ())
        assert price.ms == sheet.cost.time(shape) / MS
        assert price.floor_ms == sheet.floor.floor(shape) / MS
        assert price.ms > price.floor_ms or name == "constant:7"


def test_a_profile_brings_its_own_deployment() -> None:
    floor = cost_sheet("llama-3.1-70b-h200-tp4-bf16").floor
    assert (floor.model.name, floor.gpu.name, floor.tensor_parallel_size) == ("llama-3.1-70b", "h200", 4)
    assert cost_sheet("roofline").floor.model.name == "llama-3.1-8b"
    assert cost_sheet("roofline", model="opt-13b", gpu="a100-40").pool.tokens == 13_727


def test_another_deployment_is_refused_and_so_is_one_that_does_not_fit() -> None:
    with pytest.raises(CostModelError, match=r"^profile 'llama-3.1-8b-h200-bf16' is for "):
        cost_sheet("llama-3.1-8b-h200-bf16", gpu="h100-80")
    with pytest.raises(CostModelError, match=r"^llama-3.1-70b in bf16 on 1 x h100-80 does not fit: "):
        cost_sheet("roofline", model="llama-3.1-70b")


def test_cells_say_what_does_not_fit_and_what_is_out_of_range(tmp_path: Path) -> None:
    profile = bundled_profiles()["llama-3.1-8b-h200-bf16"]
    path = tmp_path / "own.yaml"
    path.write_text(profile_text(replace(profile, fit=replace(profile.fit, range=Range(decodes=(1, 64))))))
    decode, prefill = cost_sheet(str(path)).tables()
    plain = cost_model("llama-3.1-8b-h200-bf16", model="llama-3.1-8b", gpu="h200").time(StepShape(128, 128 * 1024)) / MS
    assert decode.rows[1][4] == f"{plain:.1f}* (6.7)"
    assert decode.rows[1][3].startswith("7.8 (4.0)")
    assert decode.rows[3][-1] == "-"
    assert prefill.header == ("prior", "128", "512", "2,048", "8,192")


def test_facts_name_origin_layout_pool_and_errors() -> None:
    facts = cost_sheet("llama-3.1-70b-h200-tp4-bf16").facts()
    assert facts["model"] == "llama-3.1-70b in bf16, KV in bf16, on 4 x h200 (tp4)"
    assert facts["error"] == ("decode MAPE 3.1, p95 12.9, bias -1.2 (held out); prefill MAPE 8.2, p95 16.1, "
                              "bias -0.9 (held out); mixed unknown; in percent, held against kernel times, not an "
                              "engine's")
    assert "tokens of KV cache" in facts["KV pool"]
    assert "mixed steps put together by factors from other GPUs" in facts["cost model"]
    assert "error" not in cost_sheet("roofline").facts()


@pytest.mark.parametrize("name", bundled_profiles())
def test_every_bundled_profile_publishes_its_errors(name: str) -> None:
    """A claim for a GPU is a table of errors by regime, also where one is not known."""
    told = cost_sheet(name).facts()["error"].split("; ")
    for regime, error in vars(bundled_profiles()[name].fit.errors).items():
        start = f"{regime} MAPE " if error else f"{regime} unknown"
        assert any(part.startswith(start) for part in told)


def test_the_figure_has_a_line_and_a_floor_for_each_context_that_fits() -> None:
    frame = cost_sheet("llama-3.1-8b-h200-bf16").frame()
    left, right = costs_figure(frame, "a title").axes
    assert [len(axes.lines) for axes in (left, right)] == [8, 6]
    solid, dashed = left.lines[2:4]
    rows = frame[(frame["kind"] == "decode") & (frame["context"] == 1024)]
    assert solid.get_ydata().tolist() == rows["ms"].tolist()
    assert dashed.get_ydata().tolist() == rows["floor_ms"].tolist()
    assert len(left.lines[6].get_xdata()) == 3    # 16,384 tokens: 128 sequences do not fit
