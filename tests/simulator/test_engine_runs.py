"""A recorded run is recognised by what stands in it, and one that cannot be is refused in one line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.engine_runs import llmservingsim, ours, read_run, vllm_bench
from simulator.errors import InputError

BENCH: dict[str, Any] = {
    "backend": "vllm", "completed": 2, "duration": 9.0,
    "start_times": [100.5, 100.0, 101.0], "input_lens": [7, 30, 5], "output_lens": [3, 1, 0],
    "ttfts": [0.25, 0.5, 0.0], "itls": [[0.125, 0.25], [], []], "errors": ["", "", "timed out"],
}
OURS: dict[str, Any] = {
    "backend": "batchsim:vllm", "completed": 2, "duration": 9.0,
    "start_times": [0.0, 0.5, None], "input_lens": [30, 7, 5], "output_lens": [1, 3, None],
    "ttfts": [0.5, 0.25, None], "latencies": [0.5, 0.625, None], "itls": [[], [0.125, 0.25], None],
}
LINES: list[dict[str, Any]] = [
    {"request_id": "b", "input_toks": 7, "output_toks": 3, "arrival_time": 9e8, "queued_ts": 20.5,
     "scheduled_ts": 20.6, "first_token_ts": 20.75, "last_token_ts": 21.125},
    {"request_id": "a", "input_toks": 30, "output_toks": 1, "arrival_time": 9e8, "queued_ts": 20.0,
     "scheduled_ts": 20.1, "first_token_ts": 20.5, "last_token_ts": 20.5},
    {"request_id": "c", "input_toks": 5, "output_toks": 0, "arrival_time": 9e8, "queued_ts": 21.0,
     "scheduled_ts": 20.1, "first_token_ts": None, "last_token_ts": None},
]


def written(path: Path, content: object) -> Path:
    if isinstance(content, list):
        path.write_text("".join(json.dumps(line) + "\n" for line in content))
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(("content", "dialect"), [(BENCH, vllm_bench.NAME), (OURS, ours.NAME),
                                                  (LINES, llmservingsim.NAME)])
def test_the_same_run_in_each_dialect(content: object, dialect: str, tmp_path: Path) -> None:
    run = read_run(written(tmp_path / "run", content))
    assert (run.dialect, len(run), run.failed) == (dialect, 2, 1)
    assert run.trace.arrival.tolist() == [0, 500_000_000]
    assert run.trace.prompt.tolist() == [30, 7]
    assert run.trace.output.tolist() == run.trace.max_tokens.tolist() == [1, 3]    # type: ignore[union-attr]
    assert run.ttft.tolist() == [0.5, 0.25]
    assert run.e2el.tolist() == [0.5, 0.625]
    assert np.array_equal(run.tpot, [np.nan, 0.1875], equal_nan=True)
    assert (run.makespan, run.output_tokens) == (1.125, 4)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_run(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


@pytest.mark.parametrize(("content", "message"), [
    ("", ": is no recorded run that is known (known: batchsim --save-detailed; vllm bench serve --save-detailed; "
         "LLMServingSim's bench recorder)"),
    ("arrival,prompt\n1,2\n", ": is no recorded run that is known"),
    ({"completed": 3}, ": is no recorded run that is known"),
    ("[" * 100_000, ": is no recorded run that is known"),
    (without(BENCH, "start_times"), ": lacks the array 'start_times', without which nobody knows when requests "
                                    "arrived: record it with a newer vllm bench serve"),
    (without(BENCH, "input_lens"), ": lacks the array 'input_lens': run the benchmark with --save-detailed"),
    (without(OURS, "latencies"), ": lacks the array 'latencies': run the benchmark with --save-detailed"),
    (BENCH | {"ttfts": [0.25]}, ": its arrays differ in length: start_times 3, input_lens 3, output_lens 3, ttfts 1, "
                                "itls 3"),
    (BENCH | {"ttfts": [None, 0.5, 0.0]}, ", request 0: 'ttfts' must be a number of seconds, not None"),
    (BENCH | {"ttfts": [-0.25, 0.5, 0.0]}, ", request 0: arrival, first and last token are out of order (100.500000, "
                                           "100.250000, 100.625000 s)"),
    (BENCH | {"input_lens": [7.5, 30, 5]}, ", request 0: 'input_lens' must be a whole number of tokens, not 7.5"),
    (BENCH | {"input_lens": [0, 30, 5]}, ", request 0: has 0 prompt and 3 output tokens; both must be at least 1"),
    (BENCH | {"itls": [0.1, [], []]}, ", request 0: 'itls' must be a list of numbers"),
    (BENCH | {"errors": ["a", "b", "c"]}, ": holds no answered request, so there is nothing to compare with"),
    ([without(LINES[0], "queued_ts")], ", line 1: lacks 'queued_ts', without which nobody knows when it arrived"),
    (BENCH | {"ttfts": [1e300, 0.5, 0.0]}, ", request 0: 'ttfts' must be a number of seconds, not 1e+300"),
    (BENCH | {"start_times": [1.0] * 3, "ttfts": [0.0] * 3, "itls": [[], [], []]},
     ": its last token came with the first request, so it measures nothing"),
    (BENCH | {"errors": 1}, ": lacks the array 'errors'"),
    (BENCH | {"errors": [""]}, ": its arrays differ in length: errors 1, "),
    ([LINES[0], without(LINES[1], "input_toks")], ", line 2: lacks 'input_toks'"),
    ([LINES[0], [1, 2]], ", line 2: is no record of a request"),
    (json.dumps(LINES[0]) + "\n{half", ", line 2: is not JSON ("),
])
def test_what_is_no_run_is_refused_in_one_line(content: object, message: str, tmp_path: Path) -> None:
    assert refusal(written(tmp_path / "run", content)).startswith(message)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nothing") == ": No such file or directory"
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    assert refusal(tmp_path / "bytes") == ": is no text in UTF-8"


@given(st.dictionaries(st.sampled_from([*BENCH, *OURS, "junk"]),
                       st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                                    lambda inner: st.lists(inner, max_size=4), max_leaves=8)))
def test_junk_is_read_or_refused_and_never_breaks(tmp_path_factory: pytest.TempPathFactory,
                                                  changes: dict[str, Any]) -> None:
    path = written(tmp_path_factory.mktemp("junk") / "run", BENCH | changes)
    with suppress(InputError):
        assert len(read_run(path)) > 0
