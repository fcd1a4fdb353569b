"""A sweep that runs each point several times: the same traffic for all points, means, and intervals in pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from worlds import trace_of

from cost_models import Constant
from simulator.errors import InputError
from simulator.studies.differences import UNMEASURED
from simulator.studies.sweep import Sweep, sweep
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.tables import certainty, table

OUTPUTS = (9, 1, 1, 7, 8, 2, 1, 2)
FREE = {"cost_model": Constant(1000), "kv_capacity_tokens": float("inf"), "load": "saturated"}


@pytest.fixture(scope="module")
def found() -> Sweep:
    """Two windows of four requests in one slot or two: 18 and 13 steps, or 9 and 8."""
    return sweep(trace_of([(0, 4, output) for output in OUTPUTS]), vary={"max_num_seqs": [1, 2]}, replications=2,
                 **FREE)    # type: ignore[arg-type]


def test_each_point_has_a_record_for_each_run(found: Sweep) -> None:
    assert [(each["max_num_seqs"], each["run_number"], each["steps"]) for each in found.records] == [
        (1, 0, 18), (1, 1, 13), (2, 0, 9), (2, 1, 8)]
    assert found.replications == "2 windows of the trace"


def test_points_are_shown_as_means(found: Sweep) -> None:
    means = averaged(found.records)
    assert [(each["max_num_seqs"], each["steps"]) for each in means] == [(1, 15.5), (2, 8.5)]
    assert means[0]["seed"] == 0
    assert means[0]["policy"] == "vllm"
    assert "the mean of 2 windows" in str(table(found))


def test_differences_are_to_the_first_point_in_pairs(found: Sweep) -> None:
    each = next(each for each in found.differences() if each.figure == "output_throughput")
    change = 1e6 * np.array([18 / 9 - 18 / 18, 13 / 8 - 13 / 13])
    assert each.label == "max_num_seqs=2"
    assert each.difference.mean == pytest.approx(change.mean())
    assert each.difference.half_width == pytest.approx(12.7062 * change.std(ddof=1) / 2 ** 0.5, rel=1e-5)
    shown = certainty(found)
    assert shown is not None
    assert "Against max_num_seqs=1: 2 windows of the trace" in str(shown)


def test_once_each_says_nothing_of_chance() -> None:
    found = sweep(num_prompts=10, vary={"max_num_seqs": [1, 2]})
    assert found.differences() == []
    assert certainty(found) is None
    assert averaged(found.records) == found.records


def test_seeds_are_shared_by_all_points_whatever_their_rate() -> None:
    found = sweep(num_prompts=10, vary={"request_rate": [2, 4]}, replications=2, seed=5)
    assert UNMEASURED not in found.account().warnings
    assert [(each["request_rate"], each["seed"]) for each in found.records] == [(2, 5), (2, 6), (4, 5), (4, 6)]
    digests = [each["trace_digest"] for each in found.records]
    assert digests[:2] == digests[2:]
    assert digests[0] != digests[1]


def test_a_point_that_fails_at_times_is_left_out_of_the_differences() -> None:
    found = sweep(num_prompts=10, vary={"gpu": ["h100-80", "l40s", "nowhere"]}, replications=2)
    assert {each.label for each in found.differences()} <= {"gpu=l40s"}
    assert len(found.failures) >= 2


def test_records_of_another_tool_are_averaged_only_where_they_tell_their_runs() -> None:
    plain = [{"output_throughput": 1.0}, {"output_throughput": 3.0}]
    assert averaged(plain) == plain
    runs = [{"output_throughput": 1.0, "p99_ttft_ms": None, "run_number": 0, "rate": 2},
            {"output_throughput": 3.0, "p99_ttft_ms": 4.0, "run_number": 1, "rate": 2}]
    assert averaged(runs) == [{"output_throughput": 2.0, "p99_ttft_ms": None, "run_number": 0, "rate": 2}]


def test_too_few_replications_are_refused() -> None:
    with pytest.raises(InputError, match="replications must be a whole number of at least 2, not 1"):
        sweep(num_prompts=10, vary={"max_num_seqs": [1]}, replications=1)


def test_differences_are_plain_for_json(found: Sweep) -> None:
    document = json.loads(json.dumps([each.plain() for each in found.differences()]))
    assert document[0].keys() == {"figure", "label", "baseline", "other", "difference", "ratio"}


def test_the_table_says_which_limit_stops_the_queue(found: Sweep) -> None:
    """One slot for four requests stops the queue all the time but for the last one's."""
    first, second = table(found).rows
    assert first[-2].startswith("cap ")
    assert int(first[-2].split()[1].rstrip("%")) > int(second[-2].split()[1].rstrip("%"))
