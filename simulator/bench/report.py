"""The tables of a benchmark. Everything in them was measured; nothing is computed here but ratios."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.bench.measuring import Measurement
from simulator.bench.workloads import WORKLOADS
from simulator.tables import Table

CLOCKS = {"CPU s": ("whole_s", ".2f"), "requests/s": ("requests_per_s", ",.0f"), "steps/s": ("steps_per_s", ",.0f"),
          "us a plan": ("us_per_plan", ".1f"), "us a step": ("us_per_step", ".1f"),
          "us a request": ("us_per_request", ".1f"), "peak MiB": ("peak_mib", ",.0f")}
"""Columns of the tables of speed: where the value stands, and how it is written."""
COUNTS = ("plans", "steps", "events")
SEVERAL, SIZES = "policies", "million"
"""The workload that gets a table of its own, a row a policy, and the one that is run at several sizes."""


def tables(found: Sequence[Measurement]) -> list[Table]:
    """Speed of the workloads and of the policies, and what was done in numbers that no machine changes."""
    several = [each for each in found if each.workload == SEVERAL]
    others = [each for each in found if each.workload != SEVERAL]
    made = [_speed("How fast", others, [label(each.workload, each.policy) for each in others], _growth(others)),
            _speed(f"Every policy: {WORKLOADS[SEVERAL].about}", several, [each.policy for each in several],
                   _slowest(several)),
            _counts([each for each in found if each.plans])]
    return [table for table in made if table.rows]


def label(workload: str, policy: str) -> str:
    """What a case is called: its policy is named where it is not the usual one."""
    return workload if policy in ("", "vllm") and workload != SEVERAL else f"{workload}, {policy}"


def _speed(title: str, found: Sequence[Measurement], labels: Sequence[str], note: str) -> Table:
    rows = [(name, f"{each.rows:,}", *(_cell(each, *column) for column in CLOCKS.values()))
            for name, each in zip(labels, found, strict=True)]
    return Table(title, ("", "requests", *CLOCKS), tuple(rows), note)


def _cell(found: Measurement, name: str, form: str) -> str:
    value = found.rates[name] if name in found.rates else getattr(found, name)
    return "-" if value is None else format(value, form)


def _growth(found: Sequence[Measurement]) -> str:
    """How the time of a request grows with their number."""
    sizes = [each for each in found if each.workload == SIZES]
    told = []
    for policy in dict.fromkeys(each.policy for each in sizes):
        first, *_, last = [each for each in sizes if each.policy == policy]
        grown = (last.whole_s / last.rows) / (first.whole_s / first.rows)
        told.append(f"{label(SIZES, policy)}: one of {last.rows:,} requests takes {grown:.2f} times as long as one of "
                    f"{first.rows:,}.")
    return " ".join(told)


def _slowest(several: Sequence[Measurement]) -> str:
    """The slowest step beside that of vllm."""
    steps = {found.policy: found.cpu_s / found.steps for found in several if found.steps}
    if "vllm" not in steps or len(steps) < 2:
        return ""
    slowest = max(steps, key=steps.__getitem__)
    return f"The slowest step is that of {slowest}: {steps[slowest] / steps['vllm']:.1f} times that of vllm."


def _counts(found: Sequence[Measurement]) -> Table:
    rows = [(label(each.workload, each.policy), f"{each.rows:,}", *_of_each(each)) for each in found]
    header = (cell for name in COUNTS for cell in (name, "a request"))
    return Table("What was done, the same on every machine", ("", "requests", *header), tuple(rows))


def _of_each(found: Measurement) -> list[str]:
    """Every count, and what it comes to for one request."""
    counts = [getattr(found, name) for name in COUNTS]
    return [cell for count in counts for cell in (f"{count:,}", f"{count / found.rows:.2f}")]
