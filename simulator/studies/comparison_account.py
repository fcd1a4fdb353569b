"""The account of a comparison: what the switch is worth, in the order in which a reader asks. It measures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simulator.account import Account
from simulator.studies.facts import inputs, warnings
from simulator.studies.ratios import RATIOS
from simulator.studies.sections import span, tables

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison


def account(found: Comparison) -> Account:
    """Question, answer, tables and facts."""
    first, *others = found.labels
    trace = found.results[first, "trace"].setup.trace
    question = f"What is {' or '.join(others)} worth over {first} on {trace.name}?"
    return Account(question, (*served(found), *felt(found), *_sure(found), *_ends(found)), tuple(tables(found)),
                   tuple(inputs(found)), tuple(warnings(found)))


def served(found: Comparison) -> Iterator[str]:
    """For each policy, the three ratios in a sentence."""
    for label in found.labels[1:]:
        ratios = {ratio.key: ratio.value for ratio in found.ratios if ratio.policy == label}
        if ratios["deployed"] is None:
            yield f"{label} over {found.labels[0]}: no ratio, for the baseline serves nothing."
            continue
        parts = "; ".join(f"{RATIOS[key].partition(':')[0]} {ratios[key]:.2f}x" for key in ("scheduling", "paged")
                          if ratios[key] is not None)
        yield (f"Saturated and as deployed, {label} makes {ratios['deployed']:.2f} times as many output tokens a "
               f"second as {found.labels[0]} ({parts}).")


def felt(found: Comparison) -> Iterator[str]:
    """Both latencies of all policies at the trace's own times, as far as they were measured."""
    runs = {label: found.results[label, "trace"].summary(metrics=("ttft", "e2el")) for label in found.labels}
    known = {label: run for label, run in runs.items() if run["median_ttft_ms"] is not None}
    if known:
        told = "; ".join(f"{label} {span(run['median_ttft_ms'])} to the first token and {span(run['median_e2el_ms'])} "
                         "to the last" for label, run in known.items())
        yield f"At the trace's own times the median request waits: {told}."


def _sure(found: Comparison) -> Iterator[str]:
    """How far chance moves the ratio as deployed."""
    if found.certainty is None:
        return
    for each in found.certainty.differences["saturated"]:
        if each.figure == "deployed" and each.ratio is not None:
            yield (f"Over {found.certainty.count} replications, {each.label} over {found.labels[0]} as deployed lies "
                   f"between {each.ratio.low:.2f}x and {each.ratio.high:.2f}x ({each.ratio.level:.0%} interval).")


def _ends(found: Comparison) -> Iterator[str]:
    """What happened at the end of one short sequence."""
    for label, story in found.story().items():
        yield f"The end of one short sequence under {label} ({found.equal}): {story}"
