"""A simulation held against a recording: exact against itself, right against a run whose error is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from cost_models import CostModelError, bundled_profiles
from cost_models.profile import RequestOverhead
from cost_models.writing import profile_text
from simulator.engine_runs import read_run
from simulator.errors import InputError
from simulator.validation import Figure, validate

NAME = "llama-3.1-8b-h100-80-bf16"
PRO_6000 = "llama-3.1-8b-rtx-pro-6000-bf16"
ROWS = [(at * 30_000_000, 100 + at, 1 + at % 40) for at in range(60)]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A simulated run in the place of a recorded one."""
    result = sim.simulate(trace_of(ROWS), cost_model=NAME, max_tokens="exact")
    return result.save(tmp_path / "run.json", detailed=True)[0]


def test_a_run_agrees_with_itself(recorded: Path) -> None:
    found = validate(NAME, recorded)
    assert {round(figure.error_percent, 6) for figure in found.figures.values()} == {0}
    assert len(found.figures) == 2 + 3 * 4
    assert found.to_dict()["requests"] == 60


def test_an_error_that_is_known(recorded: Path) -> None:
    """8 ms that the recording does not have are added to each TTFT and E2EL, and to no TPOT."""
    slow = replace(bundled_profiles()[NAME], request=RequestOverhead("measured", 8.0))
    found = validate(slow, recorded).figures
    for name in ("mean_ttft_ms", "p99_ttft_ms", "median_e2el_ms"):
        assert found[name].simulated - found[name].recorded == pytest.approx(8)
    assert found["mean_tpot_ms"].error_percent == pytest.approx(0, abs=1e-6)


def test_every_second_request(recorded: Path) -> None:
    run = read_run(recorded)
    even, odd = (validate(NAME, run, rows=rows).figures["mean_ttft_ms"].recorded for rows in ("even", "odd"))
    assert even == pytest.approx(1e3 * run.ttft[::2].mean())
    assert odd == pytest.approx(1e3 * run.ttft[1::2].mean())
    assert validate(NAME, run, rows="odd").figures["duration"].recorded == run.makespan


def test_the_table_and_what_must_be_known(recorded: Path) -> None:
    found = validate(NAME, recorded, rows="odd", kv_capacity_tokens=20_000)
    assert str(found.table()).splitlines()[0] == "run.json: 60 requests, latencies of the odd ones"
    labels = [row[0] for row in found.table().rows]
    assert labels[:3] == ["duration [s]", "output tokens/s [1/s]", "TTFT, mean [ms]"]
    assert labels[-1] == "E2EL, p99 [ms]"
    told = found.remarks()
    assert told[1].startswith("simulated policy: vLLM 0.33.0")
    assert "KV pool, assumed unless it was given: 20,000 tokens, as given" in told
    assert "recorded times: the simulated client: sent to delivered" in told
    json.dumps(found.to_dict())


def test_overload_is_said(tmp_path: Path) -> None:
    result = sim.simulate(trace_of([(0, 500, 50)] * 40), cost_model=NAME, max_tokens="exact",
                          knobs={"max_num_seqs": 2})
    path = result.save(tmp_path / "run.json", detailed=True)[0]
    assert any(line.startswith("the engine is overloaded: requests wait ")
               for line in validate(NAME, path, knobs={"max_num_seqs": 2}).remarks())
    assert not any("overloaded" in line for line in validate(NAME, path).remarks())


def test_answers_of_one_token_have_no_tpot(tmp_path: Path) -> None:
    result = sim.simulate(trace_of([(0, 500, 1)] * 4), cost_model=NAME, max_tokens="exact")
    figures = validate(NAME, result.save(tmp_path / "run.json", detailed=True)[0]).figures
    assert "mean_tpot_ms" not in figures
    assert figures["mean_ttft_ms"].error_percent == pytest.approx(0, abs=1e-6)


def test_a_profile_of_ones_own(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(profile_text(bundled_profiles()[NAME]))
    assert validate(str(tmp_path / "mine.yaml"), recorded).figures == validate(NAME, recorded).figures


def test_what_does_not_fit_is_refused(recorded: Path) -> None:
    with pytest.raises(InputError, match=r"of its requests do not fit the simulated deployment: give the recorded"):
        validate(NAME, recorded, kv_capacity_tokens=64)
    with pytest.raises(CostModelError, match=r"^unknown cost model 'llama-3\.1-8b-h100': did you mean"):
        validate("llama-3.1-8b-h100", recorded)
    with pytest.raises(InputError, match=r"^'roofline' is a form and says no model and no GPU: give the name"):
        validate("roofline", recorded)
    with pytest.raises(InputError, match="unknown choice of rows 'some'"):
        validate(NAME, recorded, rows="some")    # type: ignore[arg-type]


def test_an_error_by_hand() -> None:
    assert Figure("x", 50.0, 51.0).error_percent == pytest.approx(2)
    assert Figure("x", 0.0, 51.0).error_percent is None


def test_whole_answers_have_no_tpot(recorded: Path) -> None:
    found = validate(NAME, recorded, policy="static")
    assert "mean_tpot_ms" not in found.figures
    assert found.figures["mean_ttft_ms"].simulated == pytest.approx(found.figures["mean_e2el_ms"].simulated)


def test_a_first_token_that_took_no_time_is_shown_without_an_error(tmp_path: Path) -> None:
    run = {"start_times": [0.0, 1.0], "input_lens": [10, 10], "output_lens": [3, 3], "ttfts": [0.0, 0.0],
           "itls": [[0.1, 0.1], [0.1, 0.1]]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    table = validate(NAME, tmp_path / "run.json").table()
    assert [row[-1] for row in table.rows if row[0].startswith("TTFT")] == ["-"] * 4


ENGINE = {"max_num_seqs": 128, "max_num_batched_tokens": 2048}


def test_the_recorded_vllm_run(shared: Path) -> None:
    """vLLM 0.19 on an RTX PRO 6000; the host time was tuned on the even requests, so the odd ones are told."""
    path = shared / "measured" / "llmservingsim" / "RTXPRO6000_Llama-3.1-8B__requests.jsonl"
    found = validate(PRO_6000, path, rows="odd", knobs=ENGINE)
    assert len(found.run) == 300
    assert found.run.makespan == pytest.approx(65.93, abs=0.01)
    for name in ("duration", "output_throughput", "mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms", "mean_e2el_ms"):
        assert abs(found.figures[name].error_percent) <= 5, name
    for name in ("mean_ttft_ms", "p90_ttft_ms", "p99_ttft_ms"):
        assert abs(found.figures[name].error_percent) <= 15, name
    assert found.result.record.out_of_range == 0
    tuned = bundled_profiles()[PRO_6000].origin.tuned
    assert tuned is not None
    assert "even requests" in tuned


def test_without_the_tuned_number_it_is_near_as_well(shared: Path) -> None:
    """The kernels carry the prediction: with the host time that is assumed elsewhere the bounds hold, too."""
    path = shared / "measured" / "llmservingsim" / "RTXPRO6000_Llama-3.1-8B__requests.jsonl"
    assumed = replace(bundled_profiles()[PRO_6000], host=bundled_profiles()[NAME].host)
    found = validate(assumed, path, knobs=ENGINE).figures
    errors = [found[name].error_percent for name in ("duration", "mean_tpot_ms", "mean_ttft_ms")]
    assert np.abs(errors).max() <= 5


def test_what_was_not_answered_or_lies_outside_the_range_is_said(tmp_path: Path) -> None:
    """Three are recorded, of which one failed; the prompt of another is longer than any that was timed."""
    run = {"start_times": [0.0, 1.0, 2.0], "input_lens": [10, 120_000, 10], "output_lens": [1, 1, 0],
           "ttfts": [0.1, 9.0, 0.0], "itls": [[], [], []], "errors": ["", "", "gone"]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    told = validate(NAME, tmp_path / "run.json", knobs={"max_num_batched_tokens": 130_000}).remarks()
    assert "not answered in the recording, and left out: 1 request" in told
    assert "1 step outside the measured range of the cost model" in told
    (tmp_path / "run.json").write_text(json.dumps({name: column[:1] for name, column in run.items()}))
    few = validate(NAME, tmp_path / "run.json").remarks()
    assert not any("not answered" in line or "outside" in line for line in few)
