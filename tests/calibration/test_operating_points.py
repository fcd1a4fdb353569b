"""Measured operating points: a closed loop by hand, and the proof where figures and package are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.operating_points import Point, answer, main, mape, points, table
from cost_models import Constant

HEADER = "backend,model_path,system,precision,isl,osl,batch_size,tp_size,silicon_tpot_ms\n"
ROWS = """vllm,meta-llama/Llama-3.1-70B,h200_sxm,fp8,1024,128,8.0,4.0,10.5
vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,1024,128,4.0,4.0,11.5
vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,1024,128,4.0,8.0,9.5
vllm,meta-llama/Llama-3.1-70B,b200_sxm,fp8,1024,128,4.0,4.0,8.5
vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp4,1024,128,4.0,4.0,7.5
trtllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,1024,128,4.0,4.0,6.5
vllm,nvidia/Llama-3.1-8B-Instruct-FP8,h100_sxm,fp8,1024,128,4.0,4.0,5.5
"""


def test_the_points_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "aic_derived").mkdir()
    (tmp_path / "aic_derived" / "silicon_sample_llama31_agg.csv").write_text(HEADER + ROWS)
    assert points(tmp_path) == [Point("h100-80", 1024, 128, 4, 11.5), Point("h200", 1024, 128, 8, 10.5)]


def test_a_point_by_hand() -> None:
    """Four clients in step, each step 10 ms: nobody prefills while another one decodes."""
    found = answer(Point("h100-80", 100, 20, 4, 12.5), Constant(10_000_000))
    assert found.tpot_ms == pytest.approx(10)
    assert found.error_percent == pytest.approx(-20)


def test_the_table_ends_with_the_error() -> None:
    found = [answer(Point("h200", 100, 20, clients, 8.0), Constant(10_000_000)) for clients in (1, 2)]
    assert mape(found) == pytest.approx(25)
    lines = str(table(found)).splitlines()
    assert lines[2].split() == ["4", "x", "h200", "100", "20", "1", "8.00", "10.00", "+25.0%"]
    assert lines[-1] == "MAPE 25.0%, bias +25.0%, 2 points"


def test_wrong_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--measured", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_figures_without_a_point_of_the_deployment_are_one_line(tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "aic_derived").mkdir()
    file = tmp_path / "aic_derived" / "silicon_sample_llama31_agg.csv"
    file.write_text(HEADER + ROWS.replace("vllm", "sglang"))
    assert main(["--measured", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"calibration: {file} has no point of llama-3.1-70b in fp8 on 4 GPUs under vLLM\n"


def test_the_error_is_at_most_a_tenth(shared: Path) -> None:
    pytest.importorskip("aiconfigurator_core", reason="needs the extra 'aic'")
    found = [answer(point) for point in points(shared / "measured")]
    assert len(found) == 30
    assert mape(found) <= 10
