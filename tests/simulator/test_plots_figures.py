"""Figures: what they say, that they leave no trace behind, and that the same input gives the same bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from worlds import trace_of

from cost_models import Constant
from simulator import InputError, simulate
from simulator.plots import (
    batch_figure,
    batch_frame,
    exhaustion_figure,
    latencies_figure,
    plot_batch,
    plot_timeline,
    save_figure,
    svg_of,
    timeline_figure,
    timeline_frame,
)
from simulator.plots.captions import BATCH, FREE, HELD, NOBODY, headline, manner, shares
from simulator.plots.summaries import batches_figure
from simulator.plots.timeline import _looks

ROWS = [(0, 5, 1 + 37 * row % 50) for row in range(60)]
SCRIPT = """
import hashlib, sys
from pathlib import Path
sys.path.insert(0, str(Path({tests!r})))
from test_plots_figures import runs
from simulator.plots import batch_figure, save_figure, timeline_figure
for name, figure in (("t", timeline_figure), ("b", batch_figure)):
    for suffix in ("svg", "png"):
        path = save_figure(figure(runs()), Path({out!r}) / f"{{name}}.{{suffix}}")
        print(hashlib.sha256(path.read_bytes()).hexdigest())
print("pyplot" if "matplotlib.pyplot" in sys.modules else "no pyplot")
"""


def run_of(policy: str = "vllm", rows=ROWS, **knobs):
    return simulate(trace_of(rows), policy, knobs=knobs, load="saturated", cost_model=Constant(1000),
                    kv_capacity_tokens=100_000)


def runs():
    return {"static": run_of("static", max_batch_size=4), "vllm": run_of("vllm", max_num_seqs=4)}


def texts(figure) -> list[str]:
    """All that is written in a figure, but for the ticks."""
    from matplotlib.text import Text

    ticks = {id(text) for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for text in axis.get_ticklabels()}
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and id(text) not in ticks]


def test_a_figure_shows_itself_in_a_notebook_whatever_the_user_has_set() -> None:
    from matplotlib import rc_context

    figure = batch_figure(runs())
    shown = figure._repr_svg_()
    with rc_context({"font.size": 30, "svg.hashsalt": "mine", "svg.fonttype": "none"}):
        assert figure._repr_svg_() == shown
    assert shown.startswith("<?xml")
    assert "<dc:date>" not in shown


def python(code: str, seed: str) -> str:
    root = Path(__file__).resolve().parents[2]
    found = os.pathsep.join([str(root), str(root / "tests")])
    env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": found}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


def test_importing_the_package_and_its_frames_loads_no_matplotlib():
    code = "import simulator, simulator.plots, sys; print('matplotlib' in sys.modules)"
    assert python(code, "0") == "False\n"


def test_the_same_runs_give_the_same_bytes_under_any_hash_seed(tmp_path):
    told = [python(SCRIPT.format(tests=str(Path(__file__).parent), out=str(tmp_path)), seed) for seed in ("1", "2")]
    assert told[0] == told[1]
    lines = told[0].split("\n")
    assert len(set(lines[:4])) == 4
    assert lines[4] == "no pyplot"


def test_the_users_settings_change_nothing_and_stay_as_they_are(tmp_path):
    import matplotlib

    def drawn(name: str) -> bytes:
        figures = {"timeline": timeline_figure(runs()), "batch": batch_figure(runs())}
        paths = [save_figure(figure, tmp_path / f"{name}-{which}.svg") for which, figure in figures.items()]
        return b"".join(path.read_bytes() for path in paths)

    plain = drawn("plain")
    odd = {"axes.grid": True, "font.size": 20.0, "font.family": ["monospace"], "savefig.transparent": True,
           "svg.hashsalt": "mine", "figure.facecolor": "black", "hatch.linewidth": 5.0, "axes.titlepad": 50.0}
    with matplotlib.rc_context(odd):
        before = dict(matplotlib.rcParams)
        assert drawn("odd") == plain
        assert dict(matplotlib.rcParams) == before


def test_no_figure_is_left_open():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    timeline_figure(runs())
    batch_figure(runs())
    plot_timeline(timeline_frame(run_of()))
    plot_batch(batch_frame(run_of()))
    assert pyplot.get_fignums() == before


def test_a_panel_a_policy_with_its_useful_share_in_the_window():
    figure = timeline_figure({"static": run_of("static", [(0, 5, 1), (0, 5, 3)], max_batch_size=2),
                              "vllm": run_of("vllm", [(0, 5, 1), (0, 5, 3)], max_num_seqs=2)})
    told = texts(figure)
    assert "4 answer tokens · 2 slots: 67% useful, 33% finished but held" in told
    assert "4 answer tokens · 2 slots: 67% useful, 33% empty" in told
    assert [text for text in told if text in (BATCH, FREE, HELD)] == [BATCH, FREE]
    assert {"static", "vllm", headline(3e-6), "time since the start (s)", "slot"} <= set(told)
    assert [ax.get_xlim() for ax in figure.axes] == [(0, 3e-6)] * 2
    assert "computes again what a preemption threw away" not in told


def test_only_so_many_slots_are_shown_and_the_title_says_so():
    figure = timeline_figure({"vllm": run_of(max_num_seqs=40)}, slots=8)
    assert figure.axes[0].get_ylim() == (8.6, 0.4)
    assert any("slots 1–8 of the 40 used: " in text for text in texts(figure))


def test_the_window_can_be_given():
    figure = timeline_figure(runs(), until=5e-6)
    assert figure.axes[0].get_xlim() == (0, 5e-6)
    assert headline(5e-6) in texts(figure)


def test_the_drawn_bars_are_those_of_the_frame():
    from matplotlib.patches import PathPatch

    frame = timeline_frame(run_of("static", max_batch_size=4))
    ax = plot_timeline(frame)
    paths = [patch.get_path() for patch in ax.patches if isinstance(patch, PathPatch)]
    assert sum(len(path.vertices) for path in paths) == 5 * len(frame)
    left = np.sort(np.concatenate([path.vertices[::5, 0] for path in paths]))
    right = np.sort(np.concatenate([path.vertices[1::5, 0] for path in paths]))
    assert left.tolist() == sorted(frame["start_s"])
    assert right.tolist() == sorted(frame["end_s"])


def test_the_shade_changes_with_the_request_and_not_within_it():
    import pandas as pd

    rows = [(1, 0, 1, "prefill", 5), (1, 1, 2, "decode", 5), (1, 2, 3, "stalled", 5), (1, 3, 4, "decode", 5),
            (2, 0, 4, "decode", 6), (1, 4, 6, "decode", 7), (2, 4, 6, "decode", 9), (1, 6, 7, "decode", 8)]
    frame = pd.DataFrame(rows, columns=["slot", "start_s", "end_s", "kind", "request"])
    assert _looks(frame).tolist() == ["prefill", "decode", "stalled", "decode", "decode", "decode, next",
                                      "decode, next", "decode"]


def test_plots_draw_on_axes_that_are_given():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_timeline(timeline_frame(run_of()), ax) is ax
    other = Figure().add_subplot()
    assert plot_batch(batch_frame(run_of()), other, column="waiting", label="mine") is other
    assert other.get_legend_handles_labels()[1] == ["mine"]


def test_the_batch_figure_names_the_mean_and_the_end_of_each_run():
    told = texts(batch_figure(runs()))
    total, ends = sum(output for *_, output in ROWS), {}
    for label, result in runs().items():
        steps = len(result.record.ends)
        ends[label] = f"{label}: effective batch {total / steps:.1f} on average, done after {steps * 1e-6:.3g} s"
    assert set(ends.values()) <= set(told)
    assert {"Effective batch", "Queue", "KV memory"} <= set(told)


def test_without_a_bound_there_is_no_panel_of_kv_memory():
    result = simulate(trace_of(ROWS), "vllm", kv_capacity_tokens=float("inf"), cost_model=Constant(1000))
    assert "KV memory" not in texts(batch_figure({"vllm": result}))


@pytest.mark.parametrize("rows", [[(0, 1, 1)], [(0, 1, 2), (7_000, 3, 1)]])
def test_tiny_runs_can_be_drawn(rows, tmp_path):
    for policy in ("static", "vllm"):
        for figure in (timeline_figure({policy: run_of(policy, rows)}), batch_figure({policy: run_of(policy, rows)})):
            assert save_figure(figure, tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_served_nobody_can_be_drawn(tmp_path):
    nobody = {"vllm": simulate(trace_of([(0, 500, 5)]), "vllm", max_model_len=100, cost_model=Constant(1000))}
    assert nobody["vllm"].summary()["completed"] == 0
    told = texts(timeline_figure(nobody))
    assert {NOBODY, "0 answer tokens · 0 of 1,024 slots used: 0% useful, 100% empty"} <= set(told)
    assert "vllm: nothing ran" in texts(batch_figure(nobody))
    for figure in (timeline_figure(nobody), batch_figure(nobody)):
        save_figure(figure, tmp_path / "none.svg")


def test_seven_policies_and_long_names_fit(tmp_path):
    many = {f"{at}, a policy whose name says everything about its memory": run_of("static", max_batch_size=1 + at)
            for at in range(7)}
    for figure in (timeline_figure(many), batch_figure(many)):
        save_figure(figure, tmp_path / "many.png")
        assert len({text for text in texts(figure) if text[0].isdigit() and "a policy" in text}) == 7


def test_nothing_to_draw_is_said():
    with pytest.raises(InputError, match="give at least one run"):
        timeline_figure({})


def test_shares_divide_all_slot_time():
    frame = timeline_frame(run_of("static", [(0, 5, 1), (0, 5, 3), (0, 5, 1)], max_batch_size=2))
    assert shares(frame, 2, 4e-6) == pytest.approx(
        {"useful": 5 / 8, "recompute": 0, "stalled": 0, "held": 2 / 8, "empty": 1 / 8})


def test_slots_held_outside_of_batches_are_told_as_such():
    import pandas as pd

    rows = [(1, 0.0, 1.0, "prefill", 0), (1, 1.0, 3.0, "held", 0), (2, 2.0, 4.0, "prefill", 1)]
    assert manner(pd.DataFrame(rows, columns=["slot", "start_s", "end_s", "kind", "request"])) == HELD


@pytest.mark.parametrize("name", ["figure.pdf", "figure", "figure.svgz"])
def test_other_suffixes_are_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        save_figure(plot_batch(batch_frame(run_of())).figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_cannot_be_written_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    figure = timeline_figure(runs())
    old = tmp_path / "timeline.svg"
    old.write_text("old")

    def broken(file, **options):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", broken)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, old)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("timeline.svg", "old")]


def test_svg_carries_no_date_and_no_version(tmp_path):
    import matplotlib

    text = save_figure(timeline_figure(runs()), tmp_path / "t.svg").read_text()
    assert "<dc:date>" not in text
    assert matplotlib.__version__ not in text
    assert (tmp_path / "t.svg").stat().st_mode & 0o444 == 0o444


def test_published_conversations_make_a_small_file(shared, tmp_path):
    path = shared / "traces/azure-2023/AzureLLMInferenceTrace_conv.csv"
    results = {policy: simulate(str(path), policy, load="saturated", num_prompts=3000) for policy in ("static", "vllm")}
    written = save_figure(timeline_figure(results), tmp_path / "timeline.svg").stat().st_size
    assert 20_000 < written < 500_000


def test_a_latency_that_a_logarithmic_axis_cannot_show_is_named() -> None:
    run = {f"{stem}_{name}_ms": value for name, median in (("ttft", 20), ("queue_time", 0))
           for stem, value in (("median", median), ("mean", 30), ("p99", 60))}
    (ax,) = latencies_figure({"a": run}).axes
    assert ax.get_xlabel() == "ms: median to p99, the mean as a dot; queue time: not shown where the median is 0"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["TTFT"]


def test_a_logarithmic_axis_has_plain_numbers_and_dollars_are_dollars() -> None:
    run = {f"{stem}_ttft_ms": value for stem, value in (("median", 20_000), ("mean", 30_000), ("p99", 60_000))}
    drawn = svg_of(latencies_figure({"a_$5_$6_^": run}))
    assert "mathdefault" not in drawn
    assert re.findall(r"<!-- (\S+000) -->", drawn)[:2] == ["20,000", "30,000"]


def test_a_figure_that_cannot_take_its_place_leaves_no_draft(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        save_figure(timeline_figure(runs()), tmp_path / "t.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_steps_has_no_line_of_batches():
    ran = {"batch_over_time": {"sequences": [2, 1], "end_s": [1.0, 3.0]}}
    [axes] = batches_figure({"none": {"batch_over_time": None}, "some": ran}).axes
    assert axes.get_legend_handles_labels()[1] == ["some"]


def test_where_nobody_is_preempted_there_is_room_for_the_same_time():
    import pandas as pd

    pools = pd.DataFrame({"share_of_peak": [0.5, 1.0], "p99_ttft_ms": [30.0, 10.0], "median_ttft_ms": [9.0, 5.0],
                          "preemptions": [0, 0]})
    kv = pd.DataFrame({"start_s": [0.0, 4.0], "end_s": [4.0, 9.0], "used_share": [0.5, 0.9]})
    away = pd.DataFrame({"lost_s": [2.0], "admitted_s": [3.0], "next_token_s": [4.0]})
    used, nobody, _ = exhaustion_figure(pools, kv, away.iloc[:0], 0.5).axes
    assert used.get_xlim() == nobody.get_xlim() == (0, 9)
    assert (nobody.collections[:], nobody.get_legend()) == ([], None)
    _, one, _ = exhaustion_figure(pools, kv, away, 0.5).axes
    assert one.get_xlim() != (0, 9)
    assert [text.get_text() for text in one.get_legend().get_texts()] == ["in the queue", "computes again",
                                                                          "loses its KV"]
