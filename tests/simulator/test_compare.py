"""The compare study: ratios by hand, the shape of its records, and each run made only once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worlds import SHARED

import simulator as sim
import traces
from cost_models import Constant
from simulator.errors import FileChanged, InputError
from simulator.policies import StaticBatching, Vllm
from simulator.studies import runner
from simulator.studies.differences import difference
from simulator.studies.sections import ratio_table, waste_table
from traces import ReadReport, Trace


def trace_of(outputs: list[int], prompt: int = 4) -> Trace:
    """Requests that all arrive at 0."""
    rows = len(outputs)
    return Trace(name="made", arrival=np.zeros(rows, np.int64), prompt=np.full(rows, prompt, np.int64),
                 output=np.array(outputs, np.int64), source="made", licence="none",
                 report=ReadReport(format="made", rows_in=rows))


OPTIONS = {"cost_model": Constant(1000), "kv_capacity_tokens": 10_000}


def test_with_flat_steps_the_scheduling_ratio_is_steps_over_steps() -> None:
    # Static: batches (9, 1) and (1, 7) take 16 steps. Refilled at once, both slots are busy for 9.
    found = sim.compare(trace_of([9, 1, 1, 7]), settings={"max_batch_size": 2}, **OPTIONS)
    assert found.speedup()["scheduling"] == pytest.approx(16 / 9)
    assert found.results["static", "saturated"].summary()["steps"] == 16


def test_equal_lengths_gain_nothing_from_scheduling() -> None:
    found = sim.compare(trace_of([7] * 12), settings={"max_batch_size": 4}, **OPTIONS)
    assert found.speedup()["scheduling"] == 1


def test_padding_and_reservation_make_the_baseline_worse_and_never_better() -> None:
    found = sim.compare("azure-conv-2023", num_prompts=400)
    ratios = {ratio.key: ratio.value for ratio in found.ratios}
    assert 1 < ratios["scheduling"] < ratios["paged"] < ratios["deployed"] < ratios["model_length"]
    assert set(found.speedup()) == {"scheduling", "paged", "deployed"}


def test_a_whole_model_length_leaves_three_slots_of_an_80_gb_card() -> None:
    found = sim.compare("azure-conv-2023", num_prompts=50)
    model_length = next(ratio for ratio in found.ratios if ratio.key == "model_length")
    assert model_length.baseline["slots"] == 457_702 // 131_072 == 3


@dataclass
class Other(Vllm):
    """vLLM under another name."""


Other.name = "other"


def test_more_than_two_policies_give_a_mapping_each() -> None:
    found = sim.compare(trace_of([9, 1, 1, 7]), policies=[StaticBatching(max_batch_size=2), Vllm(), Other()], **OPTIONS)
    assert found.speedup()["scheduling"] == {"vllm": pytest.approx(16 / 9), "other": pytest.approx(16 / 9)}
    assert list(found.equal_slots) == ["static", "vllm", "other"]


def test_the_records_are_flat_and_name_policy_and_load() -> None:
    document = json.loads(sim.compare(trace_of([3, 1]), **OPTIONS).to_json())
    assert [(run["policy"], run["load"]) for run in document["runs"]] == [
        ("static", "saturated"), ("vllm", "saturated"), ("static", "trace"), ("vllm", "trace")]
    assert not [value for run in document["runs"] for value in run.values() if isinstance(value, dict | list)]


RUNS = 8 + 5
"""Of a comparison of two: those that it shows, and the policies between the two."""


def test_each_scenario_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counting(scenario, **options):
        asked.append(json.dumps(scenario.to_dict(), default=str))
        return sim.run(scenario, **options)

    monkeypatch.setattr(runner, "run", counting)
    sim.compare(trace_of([3, 1, 2]), **OPTIONS)
    assert len(asked) == len(set(asked)) == RUNS


@pytest.mark.parametrize("few", [None, 3])
def test_all_runs_share_one_trace(few: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once and hashed once, and a load's new arrivals copy no other column."""
    read, hashed, feed = [], [], traces.digest._feed
    monkeypatch.setattr(traces, "load", lambda name, **how: read.append(name) or trace_of([3, 1, 4, 1, 5]))
    monkeypatch.setattr(traces.digest, "_feed", lambda *column: hashed.append(column[1]) or feed(*column))
    found = sim.compare("some.csv", ["static", "orca", "vllm"], num_prompts=few, **OPTIONS)
    assert read == ["some.csv"]
    assert hashed.count("prompt") == 1
    results = [*found.results.values(), *found.equal_slots.values()]
    assert len({id(result.setup.trace.prompt) for result in results}) == 1
    assert {len(result.setup.trace) for result in results} == {few or 5}


def test_progress_ends_at_all_requests_of_all_runs() -> None:
    told: list[tuple[str, int, int]] = []
    sim.compare(trace_of([3, 1, 2]), progress=lambda *words: told.append(words), **OPTIONS)
    assert told[-1][1] == told[-1][2] == 3 * RUNS
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


@pytest.mark.parametrize(("policies", "message"), [
    (["vllm"], "compare needs at least two policies, such as static,vllm"),
    (["vllm", "vllm"], "each policy can be compared once, not twice: vllm, vllm"),
])
def test_what_cannot_be_compared(policies: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        sim.compare(trace_of([1]), policies=policies)
    assert str(caught.value) == message


def test_idle_slots_cost_more_than_padding_on_chat_traffic() -> None:
    deployed = next(ratio for ratio in sim.compare("azure-conv-2023", num_prompts=600).ratios
                    if ratio.key == "deployed").baseline
    assert deployed["idle_slot_seconds"] > deployed["padding_seconds"] > 0
    assert deployed["idle_slot_seconds"] + deployed["padding_seconds"] < deployed["slot_seconds"]


TRIAL = {("conv", 32): (4.1, 7.8), ("code", 32): (2.2, 6.5), ("conv", 8): (11.6, 13.7)}
"""What an independent trial simulation reached on the published traces: static ragged and padded against vLLM."""


@pytest.mark.slow
@pytest.mark.parametrize(("which", "slots"), TRIAL)
def test_the_published_traces_give_what_a_trial_simulation_gave(which: str, slots: int) -> None:
    path = SHARED / "traces" / "azure-2023" / f"AzureLLMInferenceTrace_{which}.csv"
    if not path.exists():
        pytest.skip(f"needs {path.name}")
    found = sim.compare(str(path), settings={"max_batch_size": slots, "max_num_seqs": 256,
                                             "max_num_batched_tokens": 8192})
    ragged, padded = TRIAL[which, slots]
    assert found.speedup()["paged"] == pytest.approx(ragged, rel=0.15)
    assert found.speedup()["deployed"] == pytest.approx(padded, rel=0.15)


def test_a_band_is_of_the_runs_that_are_shown() -> None:
    told: list[tuple[str, int, int]] = []
    plain = sim.compare("azure-conv-2023", num_prompts=60)
    found = sim.compare("azure-conv-2023", num_prompts=60, error_band=5, progress=lambda *line: told.append(line))
    assert found.speedup() == plain.speedup()
    for result in found.results.values():
        summary = result.summary()
        assert summary["mean_ttft_ms_low"] < summary["mean_ttft_ms"] < summary["mean_ttft_ms_high"]
    assert all(result.band is None for result in found.equal_slots.values())
    assert told[-1][1] <= told[-1][2]
    assert sum("with every step 5% shorter or longer: output tokens/s" in table.note for table in found.tables()) == 2


ROWS = [9, 1, 1, 7] * 4


@pytest.mark.parametrize(("batch", "tokens", "told"), [
    (2, 10_000, "Its cap binds static: it runs 2 slots, which use 0% of the KV pool at most, so a larger batch of"),
    (8, 60, "Memory binds static: for 75% of the time in steps a lack of it stops the queue, with 87% of the KV pool "
            "in use at the peak; it runs 4 at once at most."),
    (None, 40, "static runs 3 at once at most, with 98% of the KV pool in use: memory has no room for a larger "
               "batch of its own."),
    (32, 10_000, "static has 16 requests for the 32 slots of scheduling alone, so those bind nobody."),
])
def test_the_note_says_whether_the_cap_or_the_memory_binds(batch: int | None, tokens: int, told: str) -> None:
    found = sim.compare(trace_of(ROWS), settings={"max_batch_size": batch}, cost_model=Constant(1000),
                        kv_capacity_tokens=tokens, max_tokens="9", max_model_len=16)
    note = ratio_table(found).note
    assert told in note
    assert sum(part in note for part in ("cap binds", "Memory binds", "no room", "bind nobody")) == 1


def test_the_note_names_the_token_budget_where_that_stops_the_queue() -> None:
    """Six prompts of 4 tokens, two a step: the queue stands for 2 of 5 steps, and no cap stops it."""
    found = sim.compare(trace_of([2] * 6), ["vllm", "orca"], cost_model=Constant(1000), kv_capacity_tokens=10_000,
                        settings={"vllm.max_num_seqs": 8, "vllm.max_num_batched_tokens": 8})
    summary = found.results["vllm", "saturated"].summary()
    share = summary["stopped_by_budget_share"]
    assert share == pytest.approx(2 / 5)
    assert (f"vllm has 6 requests for the 8 slots of scheduling alone, so those bind nobody. What binds vllm "
            f"is the token budget of a step: that stops the queue for {share:.0%} of the time in steps") in (
        ratio_table(found).note)
    assert "Memory" not in ratio_table(found).note


def test_without_a_queue_hardly_anything_binds() -> None:
    found = sim.compare(trace_of([2, 2]), ["vllm", "orca"], settings={"vllm.max_num_seqs": 8}, **OPTIONS)
    assert "its queue stands still for 0.0% of the time in steps" in ratio_table(found).note


@pytest.mark.parametrize(("policies", "rows"), [(["vllm", "static"], 2), (["static", "vllm"], 4)])
def test_only_a_policy_that_can_be_padded_is_shown_padded(policies: list[str], rows: int) -> None:
    """The ratio as deployed keeps its key; what would say it twice is left out."""
    found = sim.compare(trace_of(ROWS), policies, settings={"static.max_batch_size": 2}, **OPTIONS)
    ratios, wasted = ratio_table(found), waste_table(found)
    assert len(ratios.rows) == rows
    assert any("padded" in row[0] for row in (*ratios.rows, *wasted.rows)) == (rows == 4)
    assert ("no padding" in ratios.note) == (rows == 4)
    assert ("There is no padded vllm" in ratios.note) == (rows == 2)
    assert found.speedup().keys() == {"scheduling", "paged", "deployed"}


def test_all_slot_seconds_are_useful_lost_or_the_rest() -> None:
    """Static, 2 slots of 16 steps: 18 of 32 slot-steps compute; 14 are held by those who are done."""
    found = sim.compare(trace_of([9, 1, 1, 7]), settings={"max_batch_size": 2}, cost_model=Constant(10 ** 9),
                        kv_capacity_tokens=10_000)
    rows = {row[0]: row[1:] for row in waste_table(found).rows}
    assert rows["static"] == ("32", "18   56.2%", "14   43.8%", "0", "0")
    assert rows["vllm"] == ("18", "18  100.0%", "0", "0", "0")


def test_one_long_request_that_makes_the_batches_small_is_said_to_bind() -> None:
    """42 of 90 tokens are reserved for the first request, so there are two slots; all others take 6."""
    found = sim.compare(trace_of([38, *[2] * 20]), cost_model=Constant(1000), kv_capacity_tokens=90,
                        max_tokens="exact", max_model_len=64)
    assert "Its longest reservation binds static: it leaves room for 2 slots, which use 53% of" in (
        ratio_table(found).note)


def test_a_file_that_changes_between_two_runs_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("name: mine\nlayers: 2\nhidden: 64\nheads: 4\nkv_heads: 4\nhead_dim: 16\nffn: 128\nvocab: 100\n"
                    "max_model_len: 40960\n")

    def edit(what: str, answered: int, of: int) -> None:
        path.write_text(f"{path.read_text()}# more\n")

    with pytest.raises(FileChanged, match=r"m\.yaml has changed since it was first read"):
        sim.compare("azure-conv-2023", num_prompts=10, model=str(path), progress=edit)


def test_the_table_has_every_metric_of_every_policy_and_load() -> None:
    found = sim.compare(trace_of([9, 1, 1, 7]), settings={"max_batch_size": 2}, **OPTIONS)
    table = found.table()
    assert list(table.columns) == list(found.results)
    for key, result in found.results.items():
        assert table[key]["output_throughput"] == result.summary()["output_throughput"]
        assert table[key]["median_ttft_ms"] == result.summary()["median_ttft_ms"]


@pytest.mark.parametrize(("options", "told"), [
    ({}, "at the trace's own times"), ({"rate_scale": 2.0}, "at the trace's own times, 2 x as fast"),
    ({"request_rate": 3.0, "burstiness": 0.5}, "new arrivals, 3 requests/s, burstiness 0.5"),
    ({"max_concurrency": 2}, "at the trace's own times, at most 2 at once"),
    ({"request_rate": 3.0}, "new arrivals, 3 requests/s"), ({"shape": "ramp:1-7/1s"}, "new arrivals, ramp:1-7/1s"),
    ({"request_rate": 3.0, "shape": "burst:x5/10s@60s"}, "new arrivals, 3 requests/s, burst:x5/10s@60s")])
def test_the_title_says_how_requests_come(options: dict[str, Any], told: str) -> None:
    found = sim.compare(trace_of([9, 1, 1, 7]), settings={"max_batch_size": 2}, **options, **OPTIONS)
    assert f"How it feels ({told})" in [table.title for table in found.tables()]


def test_a_figure_that_is_0_at_times_has_a_difference_and_no_ratio() -> None:
    found = difference("shed", "b", [0.0, 1.0], [1.0, 4.0])
    assert found is not None
    assert (found.difference.mean, found.ratio) == (2, None)
    more = difference("shed", "b", [1.0, 4.0], [2.0, 8.0])
    assert more is not None
    assert more.ratio is not None
    assert more.ratio.mean == pytest.approx(2)
