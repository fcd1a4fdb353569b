"""The metrics of a run once more, from its event log, in plain Python: one event after the other, no arrays, no spans.

It shares no code with what it checks. It reads what `hearing` heard in exact mode (who was sent, refused, cancelled and
answered when, and what each step computed), the scenario, and facts that no log tells: how many slots a replica is
charged for, and from when to when it is there. `metrics(found)` gives names and values as in `Result.summary()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, isclose, sqrt
from typing import Any

from drawn.hearing import Heard
from drawn.plain_steps import Work, work_of

MS, SECOND = 10 ** 6, 10 ** 9


@dataclass
class Try:
    """One time that a request was sent, and what came of it; instants in ns."""

    row: int
    sent: int
    end: int = -1
    how: str = ""
    admitted: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)


@dataclass
class Answer:
    """An answered request, as its client saw it; it was asked with its first try, and sent with its last one."""

    row: int
    prompt: int
    output: int
    asked: int
    sent: int
    first: int
    last: int
    tokens: list[int]
    parts: dict[str, int]
    preemptions: int

    @property
    def ttft(self) -> int:
        return self.first - self.sent

    @property
    def e2el(self) -> int:
        return self.last - self.sent


def metrics(found: Heard) -> dict[str, Any]:
    """Every number of a summary that a log tells."""
    setup = found.result.setup
    tries = tries_of(found)
    final = {each.row: each for each in tries}    # the last one stands
    asked = {each.row: each.sent for each in reversed(tries)}
    answers = [answer_of(found, final[row], asked[row]) for row in sorted(final) if final[row].how == "answered"]
    work = [work_of(world, served, setup) for world, served in zip(found.worlds, found.result.served, strict=True)]
    how = [each.how for each in final.values()]
    came = sum(verdict == 0 for verdict in setup.verdict.tolist())
    patience, turns = setup.patience, setup.turns_wait
    gone = [each for each in tries if each.how == "gone"]
    return {"completed": len(answers), "failed": how.count("refused"),
            "rejected": len(setup.trace) - came, "skipped": came - len(final) if turns else None,
            "aborted": how.count("gone") if patience.ends else None,
            "timed_out": len(gone) if patience.ends else None,
            "retried": len(tries) - len(final) if patience.retries else None,
            "shed": [each.how for each in tries].count("refused") if found.result.cluster else None,
            "total_input_tokens": sum(each.prompt for each in answers),
            "total_output_tokens": sum(each.output for each in answers),
            "preemptions": sum(each.preemptions for each in answers),
            **throughput(found, answers), **latencies(found, answers), **resources(work),
            **money(found, work), "jain_index": evenness(found, answers)}


def differences(found: Heard) -> list[str]:
    """Where the summary or the slot ledger of a run says something else."""
    mine, summary = metrics(found), found.result.summary()
    slots = mine.pop("slots")
    theirs = {part: amount for part, amount in found.result.slot_ledger.parts.items() if amount}
    wrong = [f"{name}: {summary[name]}, not {value}" for name, value in mine.items()
             if not alike(summary[name], value)]
    if theirs != {part: amount for part, amount in slots.items() if amount}:
        wrong.append(f"slot ledger: {theirs}, not {dict(slots)}")
    return wrong


def alike(one: float | None, other: float | None) -> bool:
    """The same but for the order in which a sum was taken."""
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def tries_of(found: Heard) -> list[Try]:
    """All tries, in the order in which they were sent."""
    tries: list[Try] = []
    there: dict[int, Try] = {}
    for at, what, row in found.events:
        if what == "sent":
            there[row] = Try(row, at)
            tries.append(there[row])
        else:
            there[row].end, there[row].how = at, what
    by_row: dict[int, list[Try]] = {}
    for each in tries:
        by_row.setdefault(each.row, []).append(each)
    for world in found.worlds:
        for tick in world.ticks:
            for row in tick.admitted:
                at_that_time = [each for each in by_row[row] if each.sent <= tick.now]
                at_that_time[-1].admitted.append(tick.now)
            for row in tick.sampled:
                before_that = [each for each in by_row[row] if each.sent < tick.until]
                before_that[-1].tokens.append(tick.until)
    return tries


def answer_of(found: Heard, last: Try, asked: int) -> Answer:
    """What the client of an answered request saw."""
    setup, tokens = found.result.setup, sorted(last.tokens)
    streams, overhead = setup.policy.streams, setup.request_overhead
    first = (tokens[0] if streams else last.end) + overhead
    served = [at for at in last.admitted if at < tokens[0]][-1]
    parts = {"queue_time": last.admitted[0] - last.sent, "ttft_preemption": served - last.admitted[0],
             "ttft_prefill": tokens[0] - served, "ttft_delivery": first - tokens[0]}
    return Answer(last.row, int(setup.prompt[last.row]), len(tokens), asked, last.sent, first,
                  (tokens[-1] if streams else last.end) + overhead, tokens, parts, len(last.admitted) - 1)


def throughput(found: Heard, answers: list[Answer]) -> dict[str, Any]:
    """What is served, over which time."""
    arrival, turns = found.result.setup.trace.arrival.tolist(), found.result.setup.turns_wait
    span = arrival[-1] - arrival[0] if arrival else 0
    offered = None if turns or not span else (len(arrival) - 1) / (span / SECOND)
    if not answers:
        names = ("duration", "request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
                 "steady_duration", "steady_request_throughput", "steady_output_throughput",
                 "steady_total_token_throughput", "tail_requests", "before_tail_request_throughput",
                 "max_output_tokens_per_s", "max_concurrent_requests")
        return {**dict.fromkeys(names), "offered_request_rate": offered}
    start, end = min(each.sent for each in answers), max(each.last for each in answers)
    first = min(each.last for each in answers)
    steady = [each for each in answers if each.last > first]
    early = [each for each in answers if 4 * (each.last - start) <= 3 * (end - start)]

    def rates(counted: list[Answer], lasts: int, name: str) -> dict[str, float | None]:
        amounts = {"request_throughput": len(counted), "output_throughput": sum(each.output for each in counted),
                   "total_token_throughput": sum(each.prompt + each.output for each in counted)}
        return {name + metric: amount / (lasts / SECOND) if lasts else None for metric, amount in amounts.items()}

    good = [each for each in answers if is_good(found, each)]
    return {"duration": (end - start) / SECOND or None, "offered_request_rate": offered,
            **rates(answers, end - start, ""), **rates(steady, end - first, "steady_"),
            "steady_duration": (end - first) / SECOND or None,
            "tail_requests": len(answers) - len(early),
            "before_tail_request_throughput": rates(early, (end - start) * 3 // 4, "")["request_throughput"],
            "request_goodput": len(good) / ((end - start) / SECOND) if objectives_anywhere(found) else None,
            "max_output_tokens_per_s": busiest_second(found, answers, start),
            "max_concurrent_requests": most_at_once(answers, start)}


def objectives_anywhere(found: Heard) -> bool:
    classes = found.result.scenario.classes.values()
    return bool(found.result.scenario.goodput) or any(set(each) - {"priority"} for each in classes)


def is_good(found: Heard, answer: Answer) -> bool:
    """Whether an answer meets the objectives of its tenant's class, or else those for everybody, since it was asked."""
    scenario, setup = found.result.scenario, found.result.setup
    tenant = setup.trace.tenant[answer.row] if setup.trace.tenant else ""
    own = {name: limit for name, limit in scenario.classes.get(tenant, {}).items() if name != "priority"}
    due = own or scenario.goodput
    gaps = answer.output - 1
    for name, limit in due.items():
        if name == "ttft" and answer.first - answer.asked > limit * MS:
            return False
        if name == "e2el" and answer.last - answer.asked > limit * MS:
            return False
        if name == "tpot" and gaps:
            took = answer.last - (answer.first if setup.policy.streams else answer.asked + due.get("ttft", 0) * MS)
            if took > limit * MS * gaps:
                return False
    return True


def busiest_second(found: Heard, answers: list[Answer], start: int) -> int:
    """The most tokens delivered in one second, counted from the first request sent."""
    seconds: dict[int, int] = {}
    setup = found.result.setup
    for answer in answers:
        for token in answer.tokens:
            at = token + setup.request_overhead if setup.policy.streams else answer.last
            second = (at - start) // SECOND
            seconds[second] = seconds.get(second, 0) + 1
    return max(seconds.values())


def most_at_once(answers: list[Answer], start: int) -> int:
    """The most requests that are outstanding at any time of one second."""
    spans = [((each.sent - start) // SECOND, (each.last - start) // SECOND) for each in answers]
    return max(sum(begun <= second <= ended for begun, ended in spans) for second, _ in spans)


def evenness(found: Heard, answers: list[Answer]) -> float | None:
    """Jain's index of the shares of the tenants' requests that were answered as they should be, if any should be."""
    if not objectives_anywhere(found):
        return None
    setup, shares = found.result.setup, []
    for tenant in dict.fromkeys(setup.trace.tenant or ()):
        theirs = [row for row, verdict in enumerate(setup.verdict.tolist())
                  if not verdict and setup.trace.tenant[row] == tenant]
        fine = [each for each in answers if each.row in theirs and is_good(found, each)]
        shares += [len(fine) / len(theirs)] if theirs else []
    squares = sum(share ** 2 for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if len(shares) > 1 and squares else None


def latencies(found: Heard, answers: list[Answer]) -> dict[str, float | None]:
    """Mean, median, standard deviation and 99th percentile of everything that has many values, in ms."""
    values: dict[str, list[float]] = {name: [] for name in (
        "ttft", "tpot", "itl", "e2el", "queue_time", "ttft_preemption", "ttft_prefill", "ttft_delivery")}
    for answer in answers:
        values["ttft"].append(answer.ttft)
        values["e2el"].append(answer.e2el)
        for name, took in answer.parts.items():
            values[name].append(took)
        if found.result.setup.policy.streams and answer.output > 1:
            values["tpot"].append((answer.e2el - answer.ttft) / (answer.output - 1))
            values["itl"] += [later - sooner for sooner, later in zip(answer.tokens, answer.tokens[1:], strict=False)]
    found_all: dict[str, float | None] = {}
    for name, each in values.items():
        found_all |= {f"{word}_{name}_ms": None if number is None else number / MS
                      for word, number in spread(each).items()}
    return found_all


def spread(values: list[float]) -> dict[str, float | None]:
    """Mean, median, deviation of the population, and 99th percentile."""
    if not values:
        return dict.fromkeys(("mean", "median", "std", "p99"))
    mean = sum(values) / len(values)
    return {"mean": mean, "median": percentile(values, 50), "p99": percentile(values, 99),
            "std": sqrt(sum((value - mean) ** 2 for value in values) / len(values))}


def percentile(values: list[float], percent: float) -> float:
    """Between the two nearest ranks, in proportion."""
    ordered = sorted(values)
    rank = (len(ordered) - 1) * percent / 100
    below = floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def resources(work: list[Work]) -> dict[str, Any]:
    """What slots, memory and steps were used for, over all replicas."""
    busy = sum(each.busy for each in work)
    charged = sum(each.slots * each.lasts for each in work)
    slots: dict[str, int] = {}
    for each in work:
        for part, amount in each.slot_ns.items():
            slots[part] = slots.get(part, 0) + amount
    idle = sum(amount for part, amount in slots.items()
               if part in ("held", "behind_prefill", "stalled", "forming") or part.startswith("blocked_"))
    bounded = all(each.capacity for each in work)
    room = sum((each.capacity or 0) * each.lasts for each in work)
    shares = {f"stopped_by_{name}_share": sum(each.stopped[name] for each in work) / busy if busy else None
              for name in ("cap", "budget", "memory", "batch", "step")}
    return {"slot_seconds": charged / SECOND, "steps": sum(each.steps for each in work),
            "slot_utilization": (slots["decode"] + slots["prefill"]) / charged if charged else None,
            "mean_batch_size": sum(each.useful for each in work) / busy if busy else None,
            "idle_slot_seconds": idle / SECOND, "padding_seconds": sum(each.padded_ns for each in work) / SECOND,
            "recomputed_tokens": sum(each.redone for each in work),
            "padding_tokens": sum(each.padding for each in work), **shares,
            "kv_usage_mean": sum(each.kv_ns for each in work) / room if bounded and room else None,
            "kv_usage_max": max(each.kv_most / (each.capacity or 1) for each in work) if bounded and busy else None,
            "slots": slots}


def money(found: Heard, work: list[Work]) -> dict[str, Any]:
    """For how long replicas are paid for, and how evenly they and the tenants are served."""
    result = found.result
    start = min((at for at, what, _ in found.events if what == "sent" and took(found, at)), default=0)
    end = max((each.end for each in work), default=0)
    if result.cluster is None:
        return {"gpu_seconds": (end - start) / SECOND if end else 0.0, "peak_replicas": None, "busiest_replica": None}
    paid = []
    for life in result.cluster.lives:
        until = end if life.stopped is None else min(life.stopped, end)
        paid.append((min(max(life.ordered, start), until), until))
    most = max(sum(since <= at < until for since, until in paid) for at, _ in paid)
    mean = sum(each.busy for each in work) / len(work)
    return {"gpu_seconds": sum(until - since for since, until in paid) / SECOND if end else 0.0,
            "peak_replicas": most if end else 0,
            "busiest_replica": max(each.busy for each in work) / mean if mean else None}


def took(found: Heard, at: int) -> bool:
    """Whether somebody who was sent at this instant was not refused."""
    sent = [row for when, what, row in found.events if when == at and what == "sent"]
    refused = [row for when, what, row in found.events if when == at and what == "refused"]
    return len(sent) > len(refused)
