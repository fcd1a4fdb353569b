"""A column of priorities: read, kept by every change of the trace, and heeded by the policy that knows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simulator as sim
import traces

ROWS = "arrival,prompt,output,priority\n0,10,5,2\n0,10,5,-1\n0,10,5,0\n"


def test_priorities_are_read_and_kept(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text(ROWS)
    trace = traces.load(str(tmp_path / "some.csv"), unit="s")
    assert trace.priority is not None
    assert trace.priority.tolist() == [2, -1, 0]
    assert trace.slice(1, 3).priority.tolist() == [-1, 0]    # type: ignore[union-attr]
    assert trace.saturated().priority.tolist() == [2, -1, 0]    # type: ignore[union-attr]


def test_priorities_make_another_trace() -> None:
    columns = [np.array(column, np.int64) for column in ([0, 0], [9, 9], [1, 1])]
    plain, ranked = traces.Trace("t", *columns), traces.Trace("t", *columns, priority=np.array([1, 0]))
    assert plain.digest != ranked.digest


@pytest.mark.parametrize("bad", ["1.5", "high", "", "1e30"])
def test_a_priority_is_a_whole_number(tmp_path: Path, bad: str) -> None:
    (tmp_path / "bad.csv").write_text(ROWS + f"1,10,5,{bad}\n")
    with pytest.raises(traces.TraceError, match=r"bad\.csv, line 5"):
        traces.load(str(tmp_path / "bad.csv"), unit="s")


def test_the_most_urgent_is_served_first_where_the_policy_knows_priorities(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text(ROWS)
    trace = traces.load(str(tmp_path / "some.csv"), unit="s")
    def order(rule: str) -> list[int]:
        result = sim.simulate(trace, "vllm", knobs={"max_num_seqs": 1, "scheduling_policy": rule})
        return result.record.stays[:, 0].tolist()

    assert order("priority") == [1, 2, 0]
    assert order("fcfs") == [0, 1, 2]


def test_the_requests_of_a_result_show_their_priorities(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text(ROWS)
    trace = traces.load(str(tmp_path / "some.csv"), unit="s")
    assert sim.simulate(trace, "vllm").requests["priority"].tolist() == [2, -1, 0]
