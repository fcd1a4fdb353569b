"""Every reader, on files that mean harm and on mutants of good ones: what is read is whole, or refused in one line."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from damage import attempt, mutant, outcome
from hostile import HOSTILE, PLACES, bomb
from hypothesis import given, settings
from hypothesis import strategies as st
from parsers import PARSERS, Parser

from simulator.errors import InputError
from simulator.kinds import KINDS, kind_of, load_trace

LONGEST_S = 20.0
"""No small file may take longer, on however slow a machine; most take a thousandth of it."""
EACH = pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
KEPT = ("a byte order mark", "Windows line ends", "line ends of old Macs")
"""Hostile files that may be read after all."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise AssertionError in whatever takes longer."""
    def late(*_: object) -> None:
        raise AssertionError(f"takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@EACH
def test_a_good_file_is_read(parser: Parser) -> None:
    assert outcome(parser, parser.sample()) == "parsed"


@EACH
@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_a_mutant_is_read_or_refused(parser: Parser, chance: Random) -> None:
    outcome(parser, mutant(parser.sample(), chance))


@pytest.mark.slow
@pytest.mark.nightly
@EACH
def test_thousands_of_mutants_are_read_or_refused(parser: Parser) -> None:
    chance = Random(parser.name)
    for _ in range(1000):
        outcome(parser, mutant(parser.sample(), chance))


@EACH
def test_a_file_that_means_harm_is_read_or_refused(parser: Parser) -> None:
    good = parser.sample()
    for fits, make in HOSTILE.values():
        if fits(Path(parser.file).name):
            with within(LONGEST_S):
                outcome(parser, make(good))


@EACH
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_file_is_refused(parser: Parser, place: str, tmp_path: Path) -> None:
    path = parser.laid(tmp_path, parser.sample())
    path.unlink()
    PLACES[place](path)
    with within(LONGEST_S):
        attempt(parser, path)


@pytest.mark.parametrize(("name", "hostile", "told"), [
    ("profile", "YAML: a billion laughs", "p.yaml, line 1: not valid YAML: anchors, aliases and tags (a0) "),
    ("profile", "YAML: a tag of no type", "anchors, aliases and tags (tag:yaml.org,2002:int) are not read"),
    ("profile", "YAML: a key twice", "not valid YAML: key 'schema_version' appears twice"),
    ("shape of a model", "YAML: a number of 10,000 digits", "m.yaml: unknown key 'x'"),
    ("trace spec", "YAML: a billion laughs", "s.yaml, line 1: anchors, aliases and tags ('a0') are not read"),
    ("trace spec", "YAML: a tag of Python", "anchors, aliases and tags ('tag:yaml.org,2002:python/object/apply"),
    ("scenario", "YAML: a billion laughs", "s.yaml, line 1: anchors and aliases (a0) are not read"),
    ("scenario", "YAML: nested 100,000 deep", "s.yaml, line 1: nested deeper than 20 levels"),
    ("result", "JSON: nested 100,000 deep", "r.json: is not JSON (nested too deeply)"),
    ("result", "JSON: a name twice", "r.json: is not JSON (name 'a' appears twice)"),
    ("result", "JSON: NaN", "r.json: is not JSON (NaN is no number of JSON)"),
    ("result", "JSON: 1e999", "r.json: is no plausible result: completed must be a number or null, not inf"),
    ("result", "JSON: a number of 10,000 digits", "r.json: is not JSON (a number has thousands of digits)"),
    ("result", "JSON: half a character", "r.json: is not JSON (it holds half a character)"),
    ("baseline", "JSON: a name twice", "b.json: is not JSON (name 'a' appears twice)"),
    ("trace: mooncake", "JSON: a name twice", "row: '{\"a\": 1, \"a\": 2}' is not valid JSON (a name appears twice)"),
    ("trace: table", "gzip: 256 MiB of zeros in 256 KiB", "expands to more than 250 times its size"),
    ("trace: table", "gzip: cut off", "damaged gzip data"),
    ("trace: weka", "tar: a name that climbs out", "member ../../x.json points outside of the archive"),
    ("trace: weka", "tar: an absolute name", "member /etc/x.json points outside of the archive"),
    ("trace: weka", "tar: a link out of it", "parsed"),    # the link is passed over
    ("recording of vllm, trace", "half of it", "it.trace.jsonl, line "),
])
def test_what_harm_is_told(name: str, hostile: str, told: str) -> None:
    parser = PARSERS[name]
    assert told in outcome(parser, HOSTILE[hostile][1](parser.sample()))


@pytest.mark.parametrize("kept", KEPT)
def test_marks_and_line_ends_of_other_systems_change_nothing(kept: str) -> None:
    for name in ("profile", "shape of a model", "trace spec", "scenario", "result", "baseline", "list of a sweep",
                 "recorded run, LLMServingSim", "recording of vllm, trace", "records of a sweep"):
        assert outcome(PARSERS[name], HOSTILE[kept][1](PARSERS[name].sample())) == "parsed", name


@pytest.mark.parametrize("given", ["profile", "shape of a model", "trace spec", "baseline", "scenario",
                                   "records of a sweep", "study of a report", "config.json of a model",
                                   "trace: azure", "trace: mooncake"])
def test_a_file_of_another_kind_is_called_by_its_name(given: str) -> None:
    """Whoever swaps two files is told what the one is, and what takes it."""
    content = PARSERS[given].sample()
    takers = {"profile", "shape of a model", "trace spec", "result", "list of a sweep", "records of a sweep"} - {given}
    if given not in ("baseline", "scenario", "study of a report"):    # all three have a scenario in them
        takers.add("scenario")
    for name in takers - ({"list of a sweep"} if given == "records of a sweep" else set()):
        told = outcome(PARSERS[name], content)
        assert " looks like " in told, (name, told)
        assert told.endswith("takes it") or told.endswith("that it is in") or "take it" in told


@pytest.mark.parametrize(("name", "older", "newer", "told"), [
    ("profile", b"schema_version: 2", b"schema_version: 3", "p.yaml: unknown schema_version 3 (known: 2)"),
    ("baseline", b'"format_version": 1', b'"format_version": 2', "is a baseline of format 2, and this version reads 1"),
    ("scenario", b"seed: 3", b"sead: 3", "unknown key 'sead': did you mean 'seed'?"),
])
def test_a_file_from_the_future_says_so(name: str, older: bytes, newer: bytes, told: str) -> None:
    parser = PARSERS[name]
    assert older in parser.sample()
    assert told in outcome(parser, parser.sample().replace(older, newer, 1))


@pytest.mark.parametrize(("change", "told"), [
    ({"completed": -1}, "completed must be at least 0, not -1"),
    ({"completed": 1.5}, "completed must be a whole number, not 1.5"),
    ({"completed": 11}, "must come to num_prompts, 12, and come to 11"),
    ({"slot_utilization": 1.5}, "slot_utilization must be at most 1, not 1.5"),
    ({"duration": "long"}, "duration must be a number or null, not 'long'"),
    ({"duration": 1e-3}, "request_throughput must be completed over duration"),
    ({"p99_ttft_ms": 1.0}, "median_ttft_ms must be at most p99_ttft_ms"),
    ({"ttfts": [0.1]}, "ttfts must list num_prompts entries"), ({"num_prompts": []}, "must be numbers of at least 0"),
    ({"mean_e2el_ms": True}, "mean_e2el_ms must be a number or null, not True"),
])
def test_a_result_that_no_run_can_have_left_is_refused(change: dict[str, object], told: str) -> None:
    import json
    parser = PARSERS["result"]
    found = outcome(parser, json.dumps(json.loads(parser.sample()) | change).encode())
    assert found.startswith("/r.json: is no plausible result: ")
    assert told in found


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["trace: table", "recording of vllm, trace"])
def test_ten_gigabytes_of_zeros_are_refused_within_bounds(name: str, tmp_path: Path) -> None:
    """In ten megabytes of gzip, as a trace and as a recording."""
    parser, content = PARSERS[name], bomb(10 * 1024)
    start = time.perf_counter()
    if name.startswith("trace"):
        assert "expands to more than 250 times its size" in outcome(parser, content)
    else:
        path = parser.laid(tmp_path, b"")
        path.unlink()
        path.with_name("it.trace.jsonl.gz").write_bytes(content)
        with pytest.raises(InputError, match="expands to more than 256 MiB"):
            parser.read(path)
    assert time.perf_counter() - start < 60


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    (tmp_path / "x").write_text("a: 1")
    assert kind_of(tmp_path / "x") is None
    assert kind_of(tmp_path / "none") is None
    assert kind_of(tmp_path) is None


def test_a_folder_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("arrival,prompt_tokens,output_tokens\n")
    assert kind_of(tmp_path) is None    # it may be a trace of several files
    (tmp_path / "b.json").write_text('{"backend": "batchsim:vllm", "completed": 1, "duration": 2.0}')
    with pytest.raises(InputError, match=r"looks like a folder with a result in it, not a trace: name the file that"):
        load_trace(str(tmp_path))
