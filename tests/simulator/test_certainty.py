"""Replications and the intervals of a comparison: who shares which traffic, and differences worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.errors import InputError
from simulator.scenario import Scenario
from simulator.studies.certainty_tables import certainty_tables
from simulator.studies.compare import Comparison
from simulator.studies.replications import replications
from simulator.traffic import read_trace, under_load

RECORDED = trace_of([(at * 1000, 4, 1 + at % 3) for at in range(10)])
SMALL = {"cost_model": Constant(1000), "kv_capacity_tokens": 10_000, "settings": {"max_batch_size": 2}}


def arrivals(scenario: Scenario) -> list[int]:
    return under_load(read_trace(scenario), scenario).arrival.tolist()


def test_chance_in_the_traffic_asks_for_seeds() -> None:
    for chancy in (Scenario(num_prompts=20), Scenario(RECORDED, request_rate=5)):
        found = replications(chancy.but(seed=7), 3)
        assert found.words.startswith("seeds 7 to 9")
        assert [each.seed for each in found.scenarios] == [7, 8, 9]
        assert len({tuple(arrivals(each)) for each in found.scenarios}) == 3


def test_seeds_say_what_they_do_not_draw() -> None:
    """An interval over them knows nothing of chance in the lengths of requests that all of them have."""
    for chancy, told in ((Scenario(num_prompts=20), ""),
                         (Scenario(RECORDED, request_rate=5), ", which replay the same requests"),
                         (Scenario(RECORDED, request_rate=5, sample=0.5), ", which sample the same requests"),
                         (Scenario(mix={"azure-code-2023": 0.1}, num_prompts=20), ""),
                         (Scenario(RECORDED, mix={"azure-code-2023": 1e-6}), ", which replay the same requests"),
                         (Scenario(trace_of([(0, 4, 4)] * 10), request_rate=5), "")):
        assert replications(chancy, 3).words == f"seeds 0 to 2{told}"
        asked = ("trace", "num_prompts", "sample", "request_rate", "mix")
        assert sim.sweep(**{name: getattr(chancy, name) for name in asked}, replications=2,
                         vary={"max_num_seqs": [4]}).replications == f"seeds 0 to 1{told}"


def test_a_recorded_trace_is_cut_into_windows() -> None:
    found = replications(Scenario(RECORDED, seed=7, noise=0.1), 3)
    assert found.words == "3 windows of the trace, 3 requests each"
    assert [each.trace.output.tolist() for each in found.scenarios] == [[1, 2, 3]] * 3    # type: ignore[union-attr]
    assert [arrivals(each) for each in found.scenarios] == [[0, 1000, 2000]] * 3
    assert [each.seed for each in found.scenarios] == [7, 8, 9]    # noise differs, too


def test_a_sample_is_cut_into_windows_as_samples_share_their_requests() -> None:
    found = replications(Scenario(trace_of([(at * 1000, 4, 1 + at) for at in range(40)]), sample=0.9), 3)
    assert "windows of the trace" in found.words
    outputs = [row for each in found.scenarios for row in read_trace(each).output.tolist()]
    assert len(set(outputs)) == len(outputs)


def test_a_shape_is_that_of_the_trace_and_not_of_each_window() -> None:
    """Twenty times as many from the eighth millisecond on."""
    told = trace_of([(at * 1_000_000, 4, 1) for at in range(12)])
    asked = Scenario(told, shape="burst:x20/0.004s@0.008s", seed=3)
    whole = np.array(arrivals(asked))
    parts = [np.array(arrivals(each)) for each in replications(asked, 3).scenarios]
    assert [len(part) for part in parts] == [len(whole) // 3] * 3
    size = len(whole) // 3
    for at, part in enumerate(parts):
        assert np.diff(part).tolist() == np.diff(whole[at * size:(at + 1) * size]).tolist()
    assert np.diff(parts[2]).mean() < np.diff(parts[0]).mean() / 2


def test_windows_of_a_repeated_trace_have_no_request_in_common() -> None:
    """Each is repeated by itself, as often as the trace was; a cap may leave a part of the last round out."""
    told = trace_of([(at * 1000, 4, 1 + at) for at in range(10)])
    found = replications(Scenario(told, repeat=3, num_prompts=26), 3)
    outputs = [read_trace(each).output.tolist() for each in found.scenarios]
    assert outputs == [[1, 2, 3] * 3, [4, 5, 6] * 3, [7, 8, 9] * 3]
    with pytest.raises(InputError, match="has 10 that are no copies: ask for fewer"):
        replications(Scenario(told, repeat=3), 20)


def test_a_rate_makes_no_chance_where_all_come_at_once() -> None:
    assert "windows" in replications(Scenario(RECORDED, request_rate=5, load="saturated"), 2).words


@pytest.mark.parametrize(("count", "said"), [
    (1, "replications must be a whole number of at least 2, not 1"),
    (11, "11 replications need as many requests, and trace made has 10: ask for fewer")])
def test_too_few_or_too_many_are_refused(count: int, said: str) -> None:
    with pytest.raises(InputError) as told:
        replications(Scenario(RECORDED), count)
    assert str(told.value) == said


@pytest.fixture(scope="module")
def found() -> Comparison:
    """Two windows: with two slots and flat steps, static takes 9 + 7 and 8 + 2 steps, refilled slots 9 and 8."""
    rows = [(0, 4, output) for output in (9, 1, 1, 7, 8, 2, 1, 2)]
    return sim.compare(trace_of(rows), replications=2, **SMALL)


def test_differences_are_in_pairs(found: Comparison) -> None:
    assert found.certainty is not None
    scheduling = next(each for each in found.certainty.differences["saturated"] if each.figure == "scheduling")
    before, after = np.array([18 / 16, 13 / 10]) * 1e6, np.array([18 / 9, 13 / 8]) * 1e6    # tokens a second
    assert scheduling.baseline.mean == pytest.approx(before.mean())
    assert scheduling.other.mean == pytest.approx(after.mean())
    assert scheduling.difference.mean == pytest.approx((after - before).mean())
    spread = 12.7062 * np.std(after - before, ddof=1) / math.sqrt(2)
    assert scheduling.difference.half_width == pytest.approx(spread, rel=1e-5)
    assert scheduling.ratio is not None
    assert scheduling.ratio.mean == pytest.approx(math.sqrt(16 / 9 * 10 / 8))


def test_what_no_replication_measured_is_left_out(found: Comparison) -> None:
    assert found.certainty is not None
    figures = {each.figure for load in found.certainty.differences.values() for each in load}
    assert figures >= {"scheduling", "paged", "deployed", "request_throughput", "p99_ttft_ms"}
    assert not figures & {"request_goodput", "median_tpot_ms", "model_length"}    # no objective; static has no TPOT


def test_the_document_has_them_and_the_tables_show_them(found: Comparison) -> None:
    assert found.certainty is not None
    record = found.records()["certainty"]
    assert (record["replications"], record["replicated_by"]["trace"]) == (2, "2 windows of the trace, 4 requests each")
    assert record["differences"]["trace"][0]["difference"].keys() == {"low", "mean", "high", "level"}
    assert found.findings()["certainty"] == record
    served, felt = map(str, certainty_tables(found.certainty, "static"))
    assert "scheduling alone" in served
    assert "TTFT, p99, ms" in felt
    assert "A window is a trace of its own" in felt
    assert any("How sure is it?" in table.title for table in found.tables())


def test_without_replications_nothing_is_said_of_chance() -> None:
    plain = sim.compare(RECORDED, **SMALL)
    assert plain.certainty is None
    assert "certainty" not in plain.records()


def test_the_comparison_itself_is_the_same_with_replications(found: Comparison) -> None:
    plain = sim.compare(found.results["static", "trace"].setup.trace, **SMALL)
    assert plain.records()["runs"] == found.records()["runs"]


def test_all_policies_have_the_same_requests_and_pairs_are_narrow() -> None:
    """Policies that serve alike differ far less than the traffic does from seed to seed."""
    found = sim.compare("azure-conv-2023", ("vllm", "hybrid"), num_prompts=30, replications=3,
                        settings={"hybrid.max_num_seqs": 1024, "vllm.max_num_seqs": 1024})
    assert found.certainty is not None
    assert found.certainty.words == {"saturated": "seeds 0 to 2", "trace": "seeds 0 to 2"}
    rate = next(each for each in found.certainty.differences["trace"] if each.figure == "request_throughput")
    assert rate.difference.half_width < 0.2 * rate.other.half_width
