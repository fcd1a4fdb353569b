"""What a run says of its load: overloaded, too short to tell, or nothing. The lag itself is tested with the plan."""

from __future__ import annotations

from math import inf

import pytest
from worlds import trace_of

from cost_models import Constant
from simulator.remarks import remarks
from simulator.simulation import simulate


def told(requests: int, gap: int, tokens: int = 3, cap: int = 1, **options: object) -> list[str]:
    """Remarks on the load: one request each `gap` ns, each of so many steps of 1000 ns, `cap` at once."""
    found = simulate(trace_of([(at * gap, 4, tokens) for at in range(requests)]), knobs={"max_num_seqs": cap},
                     cost_model=Constant(1000), kv_capacity_tokens=inf, **options)
    return [line for line in remarks(found) if "requests/s come" in line]


def test_twice_the_load_that_is_served_is_overload() -> None:
    """100 requests come in 148.5 us and leave in 300."""
    assert told(100, 1500) == [
        "overloaded: 666,667 requests/s come and 333,333 are answered: the queue grows as long as they come, so that "
        "latencies tell how long the trace is"]


def test_what_comes_as_fast_as_it_is_served_is_none() -> None:
    assert told(100, 3000) == []


@pytest.mark.parametrize("options", [{"load": "saturated"}, {"max_concurrency": 2}, {"request_timeout": 3.5e-6}])
def test_where_the_client_sets_the_pace_or_gives_up_it_is_not_said(options: dict[str, object]) -> None:
    """Whoever saturates waits for ever, a closed loop follows the answers, and of timeouts another remark tells."""
    assert told(100, 1500, **options) == []


def test_of_few_requests_nothing_is_said() -> None:
    assert told(49, 1500) == []


def test_a_short_trace_with_more_than_fills_the_slots_ends_too_early_to_tell() -> None:
    """Requests come for 9.9 us, and each holds the only slot for 3."""
    assert told(100, 100) == [
        "10,000,000 requests/s come, and 333,333 would fill every slot; but they come for 9.9e-06 s only, and each "
        "holds its slot for 3e-06 s: the trace ends before the queue shows whether it grows for ever"]


def test_a_short_trace_whose_tail_drains_is_no_overload() -> None:
    """Requests come for 9.9 us, the last one leaves 40 us later: there is a slot for everybody."""
    assert told(100, 100, tokens=40, cap=1000) == []
