from dataclasses import replace

import numpy as np
import pytest
import yaml

from traces import TraceError, generate, load, read_spec
from traces.processes import PROCESSES
from traces.spec import spec_of
from traces.strict import one_of

SECOND = 10**9
MINE = {"name": "mine", "rows": 400, "prompt": {"kind": "uniform", "least": 1, "most": 100},
        "output": {"kind": "fixed", "tokens": 7}, "arrivals": {"kind": "constant", "rate": 4}}


def spec(**changes: object):
    return spec_of(MINE | changes, "test")


def process(**facts: object):
    return one_of(PROCESSES, facts, "arrivals")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_spec_gives_its_rows_lengths_and_arrivals():
    trace = generate(spec())
    assert trace.arrival.tolist() == [at * SECOND // 4 for at in range(400)]
    assert sorted(trace.prompt.tolist()) == sorted(list(range(1, 101)) * 4)
    assert set(trace.output.tolist()) == {7}
    assert (trace.name, trace.report.format) == ("mine", "generated")
    assert trace.source == "generated (seed 0) for: mine; arrivals: a constant rate of 4 requests/s"


def test_a_bursty_process_says_its_shape():
    trace = generate(spec(arrivals={"kind": "gamma", "rate": 4, "burstiness": 0.5}))
    assert trace.source.endswith("; arrivals: Gamma gaps of shape 0.5, a rate of 4 requests/s")


def test_the_seed_decides_and_lengths_do_not_shift_arrivals():
    drawn = spec(arrivals={"kind": "poisson", "rate": 4})
    assert generate(drawn, 3).digest == generate(drawn, 3).digest != generate(drawn, 4).digest
    longer = replace(drawn, arrivals={"kind": "poisson", "rate": 4}, prompt={"kind": "exponential", "mean": 9},
                     output=MINE["output"])
    assert generate(longer, 3).arrival.tolist() == generate(drawn, 3).arrival.tolist()


def test_lengths_go_together_by_the_rank_correlation():
    both = {"kind": "lognormal", "median": 500, "sigma": 1}
    trace = generate(spec(rows=20_000, prompt=both, output=both, spearman=0.6))
    ranks = [np.argsort(np.argsort(column)) for column in (trace.prompt, trace.output)]
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(0.6, abs=0.01)


def test_processes_keep_their_rates_counts_and_bunches():
    gamma = process(kind="gamma", rate=10, burstiness=0.25).draw(40_000, rng())
    gaps = np.diff(gamma)
    assert gaps.mean() == pytest.approx(SECOND / 10, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(2, rel=0.05)
    minutes = process(kind="windows", counts=[30, 0, 60])
    assert minutes.rows == 90
    times = minutes.draw(90, rng())
    assert np.bincount(times // (60 * SECOND)).tolist() == [30, 0, 60]
    assert times[-1] == pytest.approx((180 - 60 / 61) * SECOND, abs=1)
    assert process(kind="at-once").draw(3, rng()).tolist() == [0, 0, 0]
    for span, ticks in ((None, 40), (117, 40), (120, 40), (119.9, 40), (60, 21), (65.5, 22)):
        drawn = process(kind="ticks", counts=[30, 25], tick_s=3, span_s=span).draw(55, rng())
        assert np.unique(drawn).tolist() == [at * 3 * SECOND for at in range(ticks)]


@pytest.mark.parametrize(("facts", "words"), [
    ({"kind": "poisson"}, "lacks rate"), ({"kind": "poisson", "rate": 0}, "rate must be a number above 0"),
    ({"kind": "poisson", "rate": 1, "burstiness": 2}, "unknown key 'burstiness'"),
    ({"kind": "gamma", "rate": 1, "burstiness": -1}, "burstiness must be"),
    ({"kind": "windows", "counts": []}, "counts must list"), ({"kind": "windows", "counts": [0, 3]}, "begin and end"),
    ({"kind": "windows", "counts": [3, -1, 2]}, "counts must be a whole number of at least 0"),
    ({"kind": "windows", "counts": [3, 2], "span_s": 59}, "span_s must lie in the last window, from 60 to 120 s"),
    ({"kind": "windows", "counts": "33"}, "counts must list"), ({"kind": "ticks", "counts": [5], "tick_s": 7}, "ticks"),
    ({"kind": "ticks", "counts": [5], "tick_s": 3}, "a request on each of them, 20 at least"),
    ({"kind": "ticks", "counts": [20, 2], "tick_s": 3, "span_s": 66}, "a request on each of them, 20 at least"),
    ({"kind": "ticks", "counts": [20, 20], "tick_s": 3, "span_s": 121}, "span_s must lie in the last window, from 60"),
    ({"kind": "ticks", "counts": [20], "tick_s": 3, "span_s": "x"}, "span_s must be a number"),
    ({"kind": "windows", "counts": [1], "window_s": 10**12}, "146 years"),
    ({"kind": "ticks", "counts": [1], "tick_s": 10**12, "window_s": 10**12}, "146 years"),
])
def test_what_is_no_process_is_refused_in_one_line(facts, words):
    with pytest.raises(TraceError, match="arrivals: ") as error:
        process(**facts)
    assert words in str(error.value)


@pytest.mark.parametrize(("changes", "words"), [
    ({"rows": 0}, "rows must be a whole number of at least 1"),
    ({"spearman": 1.5}, "spearman must be a number from -1 to 1, not 1.5"),
    ({"rows": 10**15}, "rows must be at most 100,000,000, not 1000000000000000"),
    ({"arrivals": {"kind": "windows", "counts": [3, 4]}}, "rows is 400, but the counts of the arrivals come to 7"),
    ({"output": None}, "output: must be a mapping"), ({"name": 3}, "name must be text"),
    ({"seed": 1}, "unknown key 'seed'"), ({"turns": 3}, "turns must be a mapping of keys, not 3"),
])
def test_what_is_no_spec_is_refused_in_one_line(changes, words):
    with pytest.raises(TraceError, match="test: ") as error:
        spec(**changes)
    assert words in str(error.value)


def test_counts_say_how_many_rows_there_are(tmp_path):
    path = tmp_path / "minutes.yaml"
    facts = {key: MINE[key] for key in ("prompt", "output")} | {"arrivals": {"kind": "windows", "counts": [5, 6]}}
    path.write_text(yaml.safe_dump(facts))
    trace = load(f"gen:{path}", seed=2)
    assert (trace.name, len(trace)) == ("minutes", 11)
    assert trace.digest == generate(read_spec(path), 2).digest
    assert len(load(f"gen:{path}", limit=3)) == 3


def test_files_of_lengths_lie_beside_the_spec(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "outputs.txt").write_text("5\n6\n")
    path = tmp_path / "sub" / "mine.yaml"
    path.write_text(yaml.safe_dump(MINE | {"output": {"kind": "empirical", "file": "outputs.txt"}}))
    monkeypatch.chdir(tmp_path)
    assert sorted(load("gen:sub/mine.yaml").output.tolist()) == [5] * 200 + [6] * 200


@pytest.mark.parametrize(("content", "words"), [
    ("", "must be a mapping"), ("- 1", "must be a mapping"), ("{", "line"), ("a: b: c", "line 1"),
    (b"\xff", "not a text"), ("rows: 3", "lacks"), ("1: 2", "unknown key 1"),
    ("a: !!python/object:os.system x", "line 1"), ("name: a\nname: b\n", "line 1: key 'name' appears twice"),
    ("name: a\nprompt: {kind: fixed, tokens: 1, tokens: 2}\n", "line 2: key 'tokens' appears twice"),
    ("name: a\nrows: " + "[" * 101, "line 2: nested deeper than 100"),
])
def test_a_file_that_is_no_spec_is_refused_with_its_name(tmp_path, content, words):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TraceError, match=r"bad\.yaml") as error:
        load(f"gen:{path}")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_spec_without_an_end_is_refused(tmp_path):
    (tmp_path / "long.yaml").write_text(" " * ((1 << 20) + 1))
    with pytest.raises(TraceError, match=r"long.yaml: holds more than 1 MiB of text$"):
        load(f"gen:{tmp_path / 'long.yaml'}")
    with pytest.raises(TraceError, match=r"^/dev/zero: is no regular file$"):
        load("gen:/dev/zero")


def test_a_spec_that_is_not_there_and_options_for_files_are_refused():
    with pytest.raises(TraceError, match=r"nowhere\.yaml: No such file"):
        load("gen:nowhere.yaml")
    with pytest.raises(TraceError, match="is drawn, not read"):
        load("gen:nowhere.yaml", unit="s")
