"""Captions of the timeline: what a panel shows, in numbers and words read off its bars. Knows no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simulator.plots.bars import tokens_until

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.result import Result

USEFUL = ("prefill", "decode")
WORDS = {"useful": "useful", "recompute": "computed again", "stalled": "left out", "held": "finished but held",
         "empty": "empty"}
VISIBLE = 0.005
"""Smaller shares are neither told nor explained."""

BATCH = "A batch starts and ends as one: finished requests hold their slots (hatched) until its longest answer is done."
HELD = "Some finished requests hold their slots (hatched) for a while."
FREE = "A request leaves when its answer is finished, and its slot is free for the next one."
NOBODY = "Nobody took a slot."


class Title(NamedTuple):
    """A panel's figures in one line, and the kinds of bars that a legend must explain."""

    text: str
    kinds: set[str]


def headline(until: float, what: str = "") -> str:
    """What the picture is, for somebody who has never seen one; `what` says of which runs it is."""
    span = f"{until:,.0f}" if until >= 100 else f"{until:.3g}"
    first = f"The first {span} s{f', {what}' if what else ''}."
    return f"{first} A row is a slot, one place in the batch; a bar is a request that sits in it."


def title(frame: DataFrame, result: Result, shown: int, until: float) -> Title:
    """What came out of the window in all, and where the time of the slots shown went."""
    share = shares(frame[frame["slot"] <= shown], shown, until)
    told = [f"{part:.0%} {WORDS[kind]}" for kind, part in share.items() if kind == "useful" or part >= VISIBLE]
    tokens = tokens_until(result.only.record, until)
    used = int(frame["slot"].max()) if len(frame) else 0
    text = f"{tokens:,} answer tokens · {_slots(shown, used, result.setup.policy.slots)}: {', '.join(told)}"
    kinds = {kind for kind, part in share.items() if part >= VISIBLE} | set(frame["kind"])
    return Title(text, kinds)


def shares(frame: DataFrame, slots: int, until: float) -> dict[str, float]:
    """Share of the time of `slots` slots until `until` seconds, by the keys of WORDS; prefill and decode are useful."""
    spent = ((frame["end_s"] - frame["start_s"]).groupby(frame["kind"]).sum() / (slots * until)).to_dict()
    useful = sum(spent.get(kind, 0.0) for kind in USEFUL)
    lost = {kind: spent.get(kind, 0.0) for kind in ("recompute", "stalled", "held")}
    return {"useful": useful, **lost, "empty": max(0.0, 1 - useful - sum(lost.values()))}


def manner(frame: DataFrame) -> str:
    """How the policy treats a slot whose request has finished, as the bars show it."""
    if frame.empty:
        return NOBODY
    if not (frame["kind"] == "held").any():
        return FREE
    return BATCH if _is_batchwise(frame) else HELD


def _is_batchwise(frame: DataFrame) -> bool:
    """Whether nobody takes a slot while somebody else is in one from before."""
    stays = frame.groupby(["slot", "request"], sort=False).agg(since=("start_s", "min"), until=("end_s", "max"))
    stays = stays.sort_values("since", kind="stable")
    busy_until = stays["until"].cummax().shift(fill_value=0.0)
    newcomer = stays["since"] > stays["since"].shift(fill_value=0.0)
    return bool((stays["since"] >= busy_until)[newcomer].all())


def _slots(shown: int, used: int, cap: int) -> str:
    """Which slots the panel shows."""
    if shown < used:
        return f"slots 1–{shown} of the {used:,} used"
    if used < cap < 1 << 30:
        return f"{used} of {cap:,} slots used"
    return f"{used} slot{'s' * (used != 1)}"
