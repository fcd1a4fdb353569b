"""Solving: the answer for one layout, from its bound by search, or why there is none and what comes nearest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from simulator.counting import counted, plainly
from simulator.metrics import METRICS
from simulator.replication import MOST_REPLICAS
from simulator.studies.capacity.bound import throughput_bound
from simulator.studies.capacity.doubt import reason, remedies
from simulator.studies.capacity.lab import MOST_NOTCHES, notch_of, scale_of
from simulator.studies.capacity.layout import ALONE, FLAT_OUT, Layout
from simulator.studies.capacity.objectives import Objective, a_second, count, percent
from simulator.studies.capacity.question import Question
from simulator.studies.capacity.sample import Sample
from simulator.studies.capacity.traffic import RANDOM_ROUTERS, Probe, Traffic
from simulator.studies.capacity.verdict import Verdict, distinct, fewest_requests, verdict_of

FARTHEST = 16
"""Times the replicas that throughput suggests; more are not tried."""
BELOW_CAPACITY = 0.7
"""Of the rate of a saturated replica: where the search for the highest rate begins."""


def solve(layout: Layout, question: Question) -> None:
    """Find the answer of a layout, or why there is none."""
    if layout.lab is None:
        return
    layout.lab.need([ALONE, FLAT_OUT], "bounds")
    layout.bound = throughput_bound(layout.lab.traffic.setup, layout.lab.objectives)
    layout.why_not = _beyond_any_run(layout, question) or _too_few_to_tell(layout)
    if layout.why_not:
        return
    if question.find == "rate":
        _solve_rate(layout, question)
    else:
        _solve_replicas(layout, question)
    if layout.replicas is None and (slow := _too_slow_alone(layout)):
        layout.why_not, layout.nearest = slow, list(looser(layout.lab.objectives, layout.alone))
        layout.in_doubt = False


def _beyond_any_run(layout: Layout, question: Question) -> str:
    """The reason where throughput alone asks for more replicas than a run may have; empty elsewhere."""
    assert layout.bound is not None
    least = layout.bound.replicas
    if question.find != "replicas" or least <= MOST_REPLICAS:
        return ""
    return (f"throughput alone asks for {least:,} replicas, and no more than {MOST_REPLICAS:,} are possible in a run: "
            "less traffic would do, or requests over a longer time")


def _too_few_to_tell(layout: Layout, warm: Sequence[Sample] = ()) -> str:
    """The reason where so few requests - of these runs those that count - can show nothing; empty where they can."""
    lab = layout.runs
    asked = [distinct(warm, at, lab.traffic.fresh) if warm else lab.traffic.concerned(objective)
             for at, objective in enumerate(lab.objectives)]
    lacking = [(needed, number, objective) for number, objective in zip(asked, lab.objectives, strict=True)
               if number < (needed := fewest_requests(objective.share, lab.level))]
    if not lacking:
        return ""
    needed, requests, objective = max(lacking, key=lambda each: each[0] - each[1])
    layout.in_doubt = True
    drawn = "more --replications, " if lab.traffic.seeds > 1 and lab.traffic.fresh else ""
    again = "--repeat 2 fills the fleet with a round of its own, but" if warm else "not --repeat:"
    layout.nearest.append(f"a longer trace would do ({again} the same requests again tell nothing new), {drawn}"
                          "a lower --attainment or a lower --confidence")
    which = ", copies left out" if lab.traffic.setup.trace.original is not None else ""
    which += ", those that come once the fleet is warm" if warm else ""
    which += "," * bool(which)
    whose = "" if objective.tenant is None else f" of {objective.tenant}"
    return (f"{requests:,} requests{whose}{which} cannot show that {percent(objective.share)} of all meet their "
            f"limits, even if not one misses: at a confidence of {lab.level:g} that takes {needed:,}")


def _too_few_warm(layout: Layout, replicas: int, scale: float = 1.0) -> str:
    """The same of runs in which nobody misses; empty where somebody does."""
    lab = layout.runs
    verdict = lab.verdict(replicas, scale)
    if verdict.follows is False or any(share.mean < 1 for share in verdict.shares):
        return ""
    return _too_few_to_tell(layout, [lab.sample(probe) for probe in lab.seeds(replicas, scale)])


def _too_slow_alone(layout: Layout) -> str:
    """The reason where a request misses its limits in an empty replica already; empty where it does not."""
    lab, sample = layout.runs, layout.alone
    shares = verdict_of([sample], lab.objectives, lab.level).shares
    for objective, share in zip(lab.objectives, shares, strict=True):
        if share.high < objective.share:
            return (f"even with a replica to itself, a request meets its limits in {share.mean:.1%} of the cases, "
                    f"where {percent(objective.share)} are asked: more replicas do not help. "
                    f"{_alone(sample, objective)}")
    return ""


def _alone(sample: Sample, objective: Objective) -> str:
    """What the limits are of, in these runs."""
    told: list[str] = []
    for name in objective.limits:
        label, median, p99 = METRICS[name].label, sample.latencies[f"p50_{name}"], sample.latencies[f"p99_{name}"]
        if median is None or p99 is None:
            told.append(f"{label} is not measured")
        elif told:
            told.append(f"{label} {plainly(median)} ms and {plainly(p99)} ms")
        else:
            told.append(f"{label} is {plainly(median)} ms on the median and {plainly(p99)} ms at p99 there")
    return ", ".join(told)


def _solve_replicas(layout: Layout, question: Question) -> None:
    assert layout.bound is not None
    lab, least = layout.runs, layout.bound.replicas
    guess = max(least, min(ceil(layout.offered / max(layout.flat_out.served, 1e-9)), lab.traffic.requests))
    helpful = min(MOST_REPLICAS, lab.traffic.helpful)
    guess = min(guess, helpful)
    farthest = guess if _too_slow_alone(layout) else min(FARTHEST * guess, helpful)
    allowed = farthest if question.max_gpus is None else question.max_gpus // layout.size
    if allowed < 1:
        layout.why_not = f"one replica takes {counted(layout.size, 'GPU')}, and {_only(question.max_gpus or 0)}"
        return
    most = min(farthest, allowed)
    layout.replicas = lab.fewest_sure(min(least, most), min(guess, most), most, "replicas")
    if layout.replicas is None:
        _explain(layout, most, guess, allowed=most < farthest)


def _only(gpus: int) -> str:
    return f"only {gpus:,} {'is' if gpus == 1 else 'are'} allowed"


def _explain(layout: Layout, most: int, guess: int, *, allowed: bool) -> None:
    """Why so many replicas are no answer, and what would be; `allowed`: no more GPUs are."""
    lab = layout.runs
    layout.why_not = (_too_few_warm(layout, most) or _in_doubt(layout, most, f"with {count(most)}") or
                      f"{_all_of(most, lab.traffic.helpful, allowed=allowed)}: {shortfall(lab.verdict(most))}"
                      f"{by_chance(lab.traffic, most, allowed=allowed)}")
    if not _too_slow_alone(layout) and (allowed or not layout.in_doubt):
        layout.nearest += _near(layout, most, guess)


def _all_of(most: int, helpful: int, *, allowed: bool) -> str:
    """That so many are too few, and whose bound they are: that of the GPUs, of a run, or of the search itself."""
    whose = ("allowed" if allowed else "possible in a run" if most == MOST_REPLICAS else
             "of any help (one for each request)" if most == helpful else
             f"tried ({FARTHEST} times as many as throughput suggests)")
    return (f"{count(most)}, the most that are {whose}, are too few" if most > 1 else
            f"1 replica, all that is {whose}, is too few")


def by_chance(traffic: Traffic, most: int, *, allowed: bool) -> str:
    """That requests may share replicas of which there is one for each, where the router draws one."""
    router = traffic.scenario.router
    return "" if allowed or router not in RANDOM_ROUTERS or most < len(traffic.setup.trace) else (
        f"; router {router} may send two requests to one of them, however many there are: --router least-outstanding "
        "does not")


def _in_doubt(layout: Layout, replicas: int, where: str, scale: float = 1.0) -> str:
    """The reason where enough requests meet their limits, but are too few for that to be sure; empty elsewhere."""
    lab = layout.runs
    verdict, samples = lab.verdict(replicas, scale), [lab.sample(probe) for probe in lab.seeds(replicas, scale)]
    if verdict.holds or not verdict.holds_on_the_mean:
        return ""
    found, wanted = verdict.tightest
    requests = distinct(samples, verdict.shares.index(found), lab.traffic.fresh)
    layout.in_doubt = True
    layout.nearest += remedies(found, wanted, requests)
    return reason(found, wanted, requests, where)


def _near(layout: Layout, most: int, guess: int) -> Iterator[str]:
    """What would do: more replicas, less traffic, looser limits."""
    lab = layout.runs
    farthest = min(FARTHEST * max(most, guess), lab.traffic.helpful)
    enough = lab.fewest_sure(most + 1, max(most + 1, guess), farthest, "nearest")
    if enough is not None:
        yield f"{count(enough)} on {counted(enough * layout.size, 'GPU')} would do"
    notch = lab.highest_sure(most, _likely_notch(layout, most), most=-1, why="nearest")
    if notch is not None:
        yield (f"{count(most)} {'carries' if most == 1 else 'carry'} {scale_of(notch):.0%} of this traffic: "
               f"{a_second(layout.offered * scale_of(notch))}")
    if (sample := lab.sample(Probe(most))).follows is not False:
        yield from looser(lab.objectives, sample)


def looser(objectives: Sequence[Objective], sample: Sample) -> Iterator[str]:
    """Which limit would have done in this run, all else as it is; where none by itself, which ones together."""
    for objective, limits, times in zip(objectives, sample.limits, sample.stretch, strict=True):
        if times is not None and times > 1 and all(limit is None for limit in limits.values()):
            told = " and ".join(f"{ceil(times * limit - 1e-9):,} ms on {METRICS[name].label}"
                                for name, limit in objective.limits.items())
            yield f"limits of {told} together would do in this run"
        for name, limit in limits.items():
            if limit is not None and limit > objective.limits[name]:
                yield (f"a limit of {ceil(limit):,} ms on {METRICS[name].label} in place of "
                       f"{plainly(objective.limits[name], 6)} ms would do in this run")


def shortfall(verdict: Verdict) -> str:
    """Why a verdict is not a yes, in a few words."""
    if verdict.follows is False:
        return "requests come faster than they are answered"
    found, wanted = verdict.tightest
    return (f"{found.mean:.2%} of the requests meet their limits ({found.level:.0%} interval {found.low:.2%} to "
            f"{found.high:.2%}), where {percent(wanted)} are asked")


def _likely_notch(layout: Layout, replicas: int) -> int:
    """About as fast as the traffic may be for so many replicas."""
    return notch_of(BELOW_CAPACITY * layout.flat_out.served * replicas / layout.offered)


def _solve_rate(layout: Layout, question: Question) -> None:
    lab, replicas = layout.runs, question.scenario.replicas
    if question.max_gpus is not None and replicas * layout.size > question.max_gpus:
        take = f"take{'s' * (replicas == 1)} {counted(replicas * layout.size, 'GPU')}"
        layout.why_not = f"{count(replicas)} {take}, and {_only(question.max_gpus)}"
        return
    most = layout.highest_possible(replicas)
    found = lab.highest_sure(replicas, min(_likely_notch(layout, replicas), most), most=most, why="rate")
    if found is None:
        slowest = scale_of(-MOST_NOTCHES)
        layout.why_not = (_too_few_warm(layout, replicas, slowest) or
                          _in_doubt(layout, replicas, "at a thousandth of the traffic", slowest) or
                          "the objectives are not kept for sure even at a thousandth of the traffic: "
                          f"{shortfall(lab.verdict(replicas, slowest))}")
    else:
        layout.replicas, layout.notch = replicas, found
