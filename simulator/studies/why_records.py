"""An attribution as plain values, and as a frame to draw. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING, Any

from simulator.studies.attribution import Attribution
from simulator.studies.climb import NATURAL
from simulator.studies.points import METRICS
from simulator.studies.rungs import Rung
from simulator.studies.why import conventions, story

if TYPE_CHECKING:
    from pandas import DataFrame

WITHOUT_ORDER = "without an order"
COLUMNS = ("order", "key", "words", "start", "end", "factor", "factor_in_steps")
Bar = tuple[str, str, float, float]
"""Key, words and factor of a switch, and the factor in steps."""


def records(found: Attribution, command: str = "batchsim run --policy hybrid") -> dict[str, Any]:
    """Everything as plain values."""
    bound = found.bound
    return {
        "from": found.names[0], "to": found.names[1], "metric": found.metric, "unit": METRICS[found.metric],
        "trace": found.trace.name, "trace_notes": list(found.trace.report.notes), "num_prompts": len(found.trace),
        "load": found.scenario.load,
        "ratio": _plain(found.total), "ratio_in_steps": _plain(found.total_in_steps),
        "ratio_with_artefacts": _plain(found.raw),
        "corrections": [_record(rung, command) for rung in found.corrections],
        "ladders": [{"order": order, "rungs": [_record(rung, command) for rung in rungs]}
                    for order, rungs in found.ladders.items()],
        "shapley": None if found.shares is None else {
            key: {"factor": exp(seconds), "log": seconds, "factor_in_steps": exp(steps), "log_in_steps": steps}
            for key, (seconds, steps) in found.shares.items()},
        "slot_bound": None if bound is None else {
            "slots": bound.slots, "batches": _plain(bound.batches), "random_batches": _plain(bound.order),
            "exponential_lengths": _plain(bound.harmonic), "reached_in_steps": _plain(found.slots_in_steps)},
        "conventions": conventions(found), "story": story(found)}


def _record(rung: Rung, command: str) -> dict[str, Any]:
    point = rung.point
    return {"switch": rung.key or None, "words": rung.words, "value": _plain(point.value(rung.metric)),
            "factor": _plain(rung.factor), "factor_in_steps": _plain(rung.factor_in_steps), "steps": point.steps,
            "duration": point.duration / 1e9, "completed": point.completed, "output_tokens": point.tokens,
            "sequences": point.sequences, "preemptions": point.preemptions, "flags": rung.flags,
            "command": f"{command} {rung.flags}".rstrip()}


def _plain(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def frame(found: Attribution) -> DataFrame:
    """One row a bar of the figure: what a switch adds to what was there before, in times the corrected start.

    Columns: order, key, words, start, end, factor, factor_in_steps. Empty where a run served nothing.
    """
    import pandas as pd
    if not found.total or any(None in (rung.factor, found.raw) for rungs in found.ladders.values() for rung in rungs):
        return pd.DataFrame([], columns=list(COLUMNS))
    rows = _bars(NATURAL, [_bar(rung) for rung in found.corrections[1:]], float(found.total / (found.raw or 1)))
    for order, rungs in found.ladders.items():
        rows += _bars(order, [_bar(rung) for rung in rungs[1:]], 1.0)
    if found.shares:
        words = {switch.key: switch.words for switch in found.switches}
        rows += _bars(WITHOUT_ORDER, [(key, words[key], exp(seconds), exp(steps))
                                      for key, (seconds, steps) in found.shares.items()], 1.0)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _bar(rung: Rung) -> Bar:
    assert rung.factor is not None
    assert rung.factor_in_steps is not None
    return rung.key, rung.words, float(rung.factor), float(rung.factor_in_steps)


def _bars(order: str, bars: Sequence[Bar], at: float) -> list[tuple[Any, ...]]:
    rows = []
    for key, words, factor, in_steps in bars:
        rows.append((order, key, words, at, at * factor, factor, in_steps))
        at *= factor
    return rows
