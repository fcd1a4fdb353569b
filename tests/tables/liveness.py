"""What misbehaves and the line it gets; then overload, and what it takes a token and a request.

``python tests/tables/liveness.py`` prints both for the README's "How it is tested".
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import scripts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import wicked
from markdown import table
from overload import CASES, LOADS, REQUESTS, counts
from worlds import trace_of

from simulator.policies import Vllm

SHOWN = ("answers.Nothing", "answers.Dreamer", "answers.Empty", "answers.Divides", "answers.LeavesNone",
         "answers.Turns", "steps.Negative", "steps.More", "steps.Twice", "steps.Unadmitted", "steps.RunsFinished",
         "steps.Overspends", "queues.Drops", "queues.Doubles", "queues.PreemptsInSilence", "queues.FreesAgain",
         "queues.GrowsStranger", "queues.PingPong", "queues.SteadyByClock")
COSTS = ("NotANumber", "Raises", "TwoMinds")
"""Of all that are tried, those in the table."""


def told_of(kind: type, *policy: object) -> str:
    """The line that it gets in fast mode, and in exact mode, too, if it is asked for the same there."""
    fast, exact = (wicked.told(trace_of(wicked.ROWS), *policy, kind(), exact=exact) for exact in (False, True))
    assert kind.told in fast    # type: ignore[attr-defined]
    assert not exact or kind.told in exact    # type: ignore[attr-defined]
    return fast


def misbehaviours() -> str:
    """Every policy and cost model is tried; some are shown."""
    policies = {name: (kind.__doc__, told_of(kind)) for name, kind in wicked.POLICIES.items()}
    costs = {name: (kind.__doc__, told_of(kind, Vllm())) for name, kind in wicked.COSTS.items()}
    rows = [(f"a policy that {does}", f"`{_short(told)}`") for does, told in map(policies.__getitem__, SHOWN)]
    rows += [(f"a cost model: it {does}", f"`{_short(told)}`") for does, told in map(costs.__getitem__, COSTS)]
    return (f"{len(policies)} policies and {len(costs)} cost models that break their contracts, in fast and in exact "
            "mode: each got one line. Some of them, without the policy's name and the state of the replica, such as (0 "
            "running, 3 waiting, 10 of 10 blocks free; request 0 is first in line: 20 tokens, 2 blocks):\n\n"
            f"{table(('tried', 'the line it gets'), rows)}")


def _short(line: str) -> str:
    """The line without its policy's name and the state."""
    return re.sub(r" \(\d+ running, .*?\)", "", line.removeprefix("custom: "))


def overload() -> str:
    """Steps a token and preemptions a request, by policy and load."""
    rows = []
    for name in CASES:
        found = [counts(name, load) for load in LOADS]
        assert all(each.ended == REQUESTS for each in found)
        rows.append((name, *(f"{each.steps:.2f}, {each.preemptions:.2f}" for each in found),
                     f"{max(each.again for each in found):.2f}"))
    header = ("steps a token, preemptions a request", *(f"x{load:g}" for load in LOADS), "again a token, at most")
    return (f"{REQUESTS} requests in a pool of 600 tokens, at so many times the rate that the policy serves when it is "
            f"saturated; all ended. The last column counts tokens computed again.\n\n{table(header, rows)}")


if __name__ == "__main__":
    scripts.Asked(__doc__).parse_args()
    print(misbehaviours(), overload(), sep="\n\n")
