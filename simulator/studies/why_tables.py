"""An attribution in tables: the ladders, the shares, and the flags of every row. It measures nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import exp

from simulator.studies.attribution import Attribution
from simulator.studies.climb import NATURAL
from simulator.studies.points import METRICS, Point
from simulator.studies.rungs import Rung
from simulator.studies.why import idle, loss_of, number, seconds_told, share, times
from simulator.tables import Table

ARTEFACTS = "Factors up to the row where `so far` begins are artefacts of the baseline, and not counted."


def tables(found: Attribution) -> list[Table]:
    """The ladders, the shares and the bound; `flag_table` has the flags of each row."""
    return [*(ladder_table(found, order) for order in found.ladders), *([share_table(found)] if found.shares else []),
            *([bound_table(found)] if found.bound and found.total else [])]


def ladder_table(found: Attribution, order: str = NATURAL, numbered: bool = True) -> Table:
    """One row a switch: what it is worth in seconds and in steps, and what the runs come to."""
    numbers = {flags: f"[{number}] " if numbered else "" for number, flags in enumerate(row_flags(found))}
    foot = found.ladders[order][0].point
    artefacts = found.corrections[:-1] if order == NATURAL else ()
    rows = [_row(found, rung, numbers[rung.flags], None) for rung in artefacts]
    rows += [_row(found, rung, numbers[rung.flags], foot) for rung in _footed(found, order)]
    title = (f"Where {times(found.total)} comes from, {order}" if found.total else
             f"One switch after the other, {order}; no ratio, for {idle(found)}")
    return Table(title,
                 ("", METRICS[found.metric], "factor", "so far", "steps", "in steps", "at once", "preemptions"),
                 tuple(rows), " ".join([*([ARTEFACTS] if artefacts else []), *_losses(found.ladders[order])]))


def _losses(rungs: Iterable[Rung]) -> list[str]:
    """Why a larger batch serves less, where it does."""
    losses = {rung.words: loss_of(rung) for rung in rungs if rung.key}
    return [f"{words[:1].upper()}{words[1:]}: {loss}." for words, loss in losses.items() if loss]


def _footed(found: Attribution, order: str) -> list[Rung]:
    """The rungs, the foot being told as what the last correction makes of the baseline."""
    foot, *others = found.ladders[order]
    return [found.corrections[-1] if order == NATURAL else foot, *others]


def row_flags(found: Attribution) -> list[str]:
    """The flags of all rows of all ladders, each once."""
    rungs = [*found.corrections, *(rung for rungs in found.ladders.values() for rung in rungs)]
    return list(dict.fromkeys(rung.flags for rung in rungs))


def _row(found: Attribution, rung: Rung, number_of_row: str, foot: Point | None) -> tuple[str, ...]:
    point, words = rung.point, f"+ {rung.words}" if rung.key else found.names[0]
    so_far = "" if foot is None else times(_over(point.worth(found.metric), foot.worth(found.metric)))
    factors = (times(rung.factor), times(rung.factor_in_steps)) if rung.key else ("", "")
    return (f"{number_of_row}{words}", number(point.value(found.metric)), factors[0], so_far, f"{point.steps:,}",
            factors[1], f"{point.sequences:,}", f"{point.preemptions:,}")


def _over(above: Fraction, below: Fraction) -> Fraction | None:
    return above / below if below else None


def share_table(found: Attribution) -> Table:
    """One row a switch: its Shapley share of the logarithm, and the factor that comes to."""
    assert found.shares
    words = {switch.key: switch.words for switch in found.switches}
    seconds, steps = (sum(pair[at] for pair in found.shares.values()) for at in (0, 1))
    rows = [(words.get(key, key), f"{exp(one):.2f}x", share(one, seconds), f"{exp(other):.2f}x", share(other, steps))
            for key, (one, other) in [*found.shares.items(), ("all", (seconds, steps))]]
    return Table("Without an order: the mean over all of them (Shapley)",
                 ("", "factor", "share", "in steps", "share of it"), tuple(rows))


def bound_table(found: Attribution) -> Table:
    """What freed slots alone can be worth in steps, beside what they are."""
    bound, slots = found.bound, found.slots_in_steps
    assert bound is not None
    rows = [("at most, for batches in the trace's own order of arrival", float(bound.batches)),
            ("to be expected of the same lengths, drawn at random", float(bound.order)),
            (f"to be expected of exponential lengths (H_{bound.slots})", float(bound.harmonic))]
    rows += [("here, with prompts mixed in", float(slots))] if slots is not None else []
    rows += [("here, with prompts in steps of their own", float(rung.factor_in_steps)) for rung in found.ladder
             if rung.key == "granularity" and rung.factor_in_steps not in (None, slots)]
    note = " ".join(["At most: the longest answer of a batch over the mean of all.", *seconds_told(found)])
    return Table(f"What freed slots alone can be worth, with up to {bound.slots:,} at once", ("", "in steps"),
                 tuple((words, f"{value:.2f}x") for words, value in rows), note)


def flag_table(found: Attribution, command: str = "") -> Table:
    """The flags of each row by its number; `command` is what goes before them."""
    command = command or f"batchsim run --policy hybrid --load {found.scenario.load}"
    rows = tuple((f"[{number}]", flags or "(none)") for number, flags in enumerate(row_flags(found)))
    return Table(f"Run any row again: {command} FLAGS", ("", "FLAGS"), rows, words=("FLAGS",))
