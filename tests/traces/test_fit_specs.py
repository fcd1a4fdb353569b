import numpy as np
import pytest
import yaml

from traces import Trace, TraceError, fit, generate, kept, load
from traces.fitting import written
from traces.spec import spec_of

SECOND = 10**9


def made(arrival: np.ndarray, seed: int = 0) -> Trace:
    rng = np.random.default_rng(seed)
    prompt = np.rint(np.exp(rng.normal(6, 1, len(arrival)))).astype(int) + 1
    output = np.minimum(prompt // 4 + rng.integers(1, 200, len(arrival)), 900)
    return Trace("private", arrival - arrival[0], prompt, output, tenant=("secret",) * len(arrival))


def bursty(n: int, shape: float, rate: float = 5) -> Trace:
    gaps = np.random.default_rng(1).gamma(shape, 1 / shape / rate, n)
    return made(np.rint(np.cumsum(gaps) * SECOND).astype(np.int64))


@pytest.mark.parametrize("shape", [0.1, 0.3, 1, 4])
def test_a_stand_in_keeps_rate_bunches_lengths_and_slots(shape):
    trace = bursty(6000, shape)
    found = {each.what: each for each in kept(trace, fit(trace, "mine"))}
    assert found["requests/s"].error == pytest.approx(0, abs=1e-6)
    assert found["variation of gaps"].original == pytest.approx(shape**-0.5, rel=0.1)
    assert abs(found["variation of gaps"].error) < 0.08
    assert found["rank correlation"].original > 0.3
    off = found["rank correlation"]
    assert off.error == off.stand_in - off.original    # and no share of what may be 0
    assert abs(off.error) < 0.03
    for size in (8, 32, 64, 128):
        assert abs(found[f"slots in use, batches of {size}"].error) < 0.04
    assert abs(found["mean prompt"].error) < 0.02


def test_every_minute_keeps_its_requests():
    trace = load("azure-code-2023", seed=5)
    spec = fit(trace, "mine")
    again = generate(spec_of(spec, "mine"), 1)
    counts = [np.bincount(one.arrival // (60 * SECOND)).tolist() for one in (trace, again)]
    assert counts[0] == counts[1] == spec["arrivals"]["counts"]
    assert again.arrival[-1] == pytest.approx(trace.arrival[-1], abs=1)


def test_a_coarse_clock_stays_coarse():
    facts = fit(load("mooncake-conversation"), "mine")["arrivals"]
    assert (facts["kind"], facts["tick_s"], facts["window_s"]) == ("ticks", 3, 60)


@pytest.mark.parametrize("last", [1, 7, 20])
def test_a_last_minute_that_a_coarse_clock_cuts_short_stays_short(last):
    """Ten minutes of a request on each of 20 ticks and some more, and a part of another one."""
    ticks = np.arange(10 * 20 + last) * 3 * SECOND
    trace = made(np.sort(np.concatenate([ticks, ticks[::4], ticks[-1:]])))
    spec = fit(trace, "mine")
    assert (spec["arrivals"]["kind"], spec["arrivals"]["span_s"]) == ("ticks", ticks[-1] / SECOND)
    again = generate(spec_of(spec, "mine"))
    assert np.unique(again.arrival).tolist() == ticks.tolist()
    assert np.bincount(again.arrival // (60 * SECOND)).tolist() == spec["arrivals"]["counts"]


def test_a_trace_without_times_and_a_short_one():
    assert fit(made(np.zeros(50, np.int64)), "mine")["arrivals"] == {"kind": "at-once"}
    facts = fit(made(np.arange(100) * 101 * SECOND // 100), "mine")["arrivals"]
    assert (facts["window_s"], facts["burstiness"] > 20) == (9, True)
    at_once = made(np.zeros(50, np.int64))
    errors = {each.what: each.error for each in kept(at_once, fit(at_once, "mine"))}
    assert (errors["requests/s"], errors["variation of gaps"]) == (None, None), "there is no rate to be off"
    assert errors["mean prompt"] is not None
    one = fit(made(np.zeros(1, np.int64)), "mine")
    assert len(generate(spec_of(one, "mine"))) == 1


def test_the_file_holds_no_row_no_name_and_reads_back(tmp_path):
    trace = bursty(700, 1)
    path = tmp_path / "mine.yaml"
    path.write_text(written(fit(trace, "mine")), encoding="utf-8")
    again = load(f"gen:{path}")
    assert len(again) == 700
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    assert "private" not in text
    assert len(yaml.safe_load(text)["prompt"]["tokens"]) == 101
    assert text.count("\n") < 60


def test_the_tail_is_as_long_as_the_rows_can_tell():
    assert len(fit(bursty(500, 1), "mine")["prompt"]["tail"]) == 8    # up to 0.998
    assert len(fit(bursty(50, 1), "mine")["prompt"]["tail"]) == 0


def test_an_empty_trace_is_refused():
    with pytest.raises(TraceError, match="no requests to fit"):
        fit(made(np.zeros(1, np.int64)).head(0), "mine")
