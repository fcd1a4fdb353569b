"""The rules of a router, and the set of replicas that they choose from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.request import Request
from simulator.routing import ROUTERS, Candidates, Sight
from simulator.routing.candidates import following


def rule(name: str, candidates: Candidates):
    return ROUTERS[name](Sight(candidates, (), (), np.random.default_rng(0)))


def ready(count: int, limit: int = 100) -> Candidates:
    candidates = Candidates(limit)
    for number in range(count):
        candidates.join(number)
    return candidates


def chosen(name: str, candidates: Candidates, count: int) -> list[int]:
    """Whom the rule chooses for so many requests, none of which leaves."""
    chooses, found = rule(name, candidates), []
    for index in range(count):
        found.append(chooses.choose(Request(index, 0, 1, 1)))
        candidates.sent(found[-1])
    return found


def test_round_robin_passes_over_whoever_takes_none() -> None:
    candidates = ready(3, limit=2)
    assert chosen("round-robin", candidates, 5) == [0, 1, 2, 0, 1]
    assert chosen("round-robin", candidates, 1) == [2]
    assert not candidates


def test_least_outstanding_takes_ties_in_turn() -> None:
    candidates = ready(3)
    candidates.sent(1)
    assert chosen("least-outstanding", candidates, 5) == [0, 2, 0, 1, 2]


def test_random_reaches_all_alike() -> None:
    counts = np.bincount(chosen("random", ready(4, limit=10_000), 4000))
    assert len(counts) == 4
    assert (abs(counts - 1000) < 4 * 27.4).all()    # four standard deviations of a binomial count


def test_two_choices_even_out_what_chance_does_not() -> None:
    spread = {name: int(np.ptp(np.bincount(chosen(name, ready(50), 2000)))) for name in ("random", "power-of-two")}
    assert 3 * spread["power-of-two"] < spread["random"]


@pytest.mark.parametrize(("members", "number", "found"), [
    (0b1011, -1, 0), (0b1011, 0, 1), (0b1011, 1, 3), (0b1011, 3, 0), (0b1011, 70, 0), (1 << 600, 5, 600)])
def test_who_follows(members: int, number: int, found: int) -> None:
    assert following(members, number) == found


@given(st.lists(st.tuples(st.sampled_from(["join", "leave", "sent", "gone"]), st.integers(0, 4)), max_size=60))
def test_candidates_know_what_a_plain_count_knows(events: list[tuple[str, int]]) -> None:
    candidates, serving, load, limit = Candidates(3), set(), [0] * 5, 3
    for event, number in events:
        taking = {each for each in serving if load[each] < limit}
        if (event == "sent" and number not in taking) or (event == "gone" and not load[number]) or (
                event == "join" and number in serving):
            continue
        getattr(candidates, event)(number)
        serving.add(number) if event == "join" else serving.discard(number) if event == "leave" else None
        load[number] += {"sent": 1, "gone": -1}.get(event, 0)
        taking = {each for each in serving if load[each] < limit}
        least = min((load[each] for each in taking), default=None)
        assert {candidates[at] for at in range(len(candidates))} == taking
        assert candidates.taking == sum(1 << each for each in taking)
        assert candidates.total == sum(load)
        assert least is None or candidates.least() == sum(1 << each for each in taking if load[each] == least)
