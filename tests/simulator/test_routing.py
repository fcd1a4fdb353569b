"""The rules of a router, and the set of replicas that they choose from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment
from worlds import trace_of

from cost_models import Constant
from simulator import simulate
from simulator.fleet import Fleet
from simulator.overflow import line_for
from simulator.policies import Vllm
from simulator.request import Request
from simulator.router import Router
from simulator.routing import ROUTERS, Candidates, Sight
from simulator.routing.candidates import following
from simulator.routing.loads import LeastKv


def rule(name: str, candidates: Candidates):
    return ROUTERS[name](Sight(candidates, lambda number: candidates.outstanding[number], lambda number: 0, (),
                               np.random.default_rng(0)))


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


def test_least_kv_follows_what_is_used_and_what_waits() -> None:
    needed = [30, 10, 20]
    candidates = ready(3)
    chooses = ROUTERS["least-kv"](Sight(candidates, lambda number: needed[number], lambda number: 0, (),
                                        np.random.default_rng(0)))

    def choose() -> int:
        return chooses.choose(Request(0, 0, 1, 1))

    assert [choose(), choose()] == [1, 1]
    needed[1] = 25    # it grows without a word
    assert choose() == 2
    needed[0] = 5     # it shrinks when a request leaves, and says so
    chooses.freed(0)
    assert choose() == 0
    needed[0], needed[1], needed[2] = 40, 40, 40
    assert sorted([choose(), choose(), choose()]) == [0, 1, 2]    # ties go round
    candidates.leave(1)
    assert 1 not in [choose() for _ in range(6)]
    candidates.join(1)
    chooses.freed(1)
    needed[1] = 1
    chooses.freed(1)
    assert choose() == 1


def test_least_kv_sees_that_who_gets_a_slot_takes_less_than_who_waits() -> None:
    needed, waits = [0, 20], [0, 0]
    candidates = ready(2)
    chooses = ROUTERS["least-kv"](Sight(candidates, lambda number: needed[number], lambda number: waits[number], (),
                                        np.random.default_rng(0)))
    assert chooses.choose(Request(0, 0, 30, 1)) == 0
    needed[0], waits[0] = 30, 1    # its prompt waits there
    assert chooses.choose(Request(1, 0, 10, 1)) == 1
    needed[0], waits[0] = 5, 0     # it has a slot, and room for its first chunk; nobody has left
    assert chooses.choose(Request(2, 0, 10, 1)) == 0


def test_least_kv_always_takes_the_least_while_prompts_come_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    excess: list[int] = []

    class Watched(LeastKv):
        def choose(self, request: Request) -> int:
            number, need = super().choose(request), self._sight.kv_needed
            excess.append(need(number) - min(map(need, range(3))))
            return number

    monkeypatch.setitem(ROUTERS, "least-kv", Watched)
    rows = [(7 * at, 5 + 37 * at % 60, 1 + 11 * at % 9) for at in range(40)]
    simulate(trace_of(rows), Vllm(max_num_batched_tokens=8, max_num_seqs=4), replicas=3, router="least-kv",
             cost_model=Constant(10), request_overhead=0.0)
    assert excess == [0] * 40


def test_sessions_move_only_when_their_replica_takes_nothing() -> None:
    candidates = ready(2, limit=2)
    chooses = ROUTERS["session-affinity"](Sight(candidates, lambda number: 0, lambda number: 0,
                                                (7, 7, 8, 7, 7, -1), np.random.default_rng(0)))
    found = []
    for index in range(4):
        found.append(chooses.choose(Request(index, 0, 1, 1)))
        candidates.sent(found[-1])
    assert found == [0, 0, 1, 1]    # the third turn of 7 finds its replica full, and moves
    candidates.gone(0)
    candidates.gone(1)
    assert chooses.choose(Request(4, 0, 1, 1)) == 1    # where it is now


def prompted(index: int, pieces: str, tokens: int) -> Request:
    return Request(index, 0, tokens, 1, prefix=tuple((piece, 10 * at) for at, piece in enumerate(pieces, 1)))


def test_a_prompt_follows_the_longest_beginning_that_is_half_of_it() -> None:
    candidates = ready(3)
    chooses = ROUTERS["prefix-affinity"](Sight(candidates, lambda number: 0, lambda number: 0, (),
                                               np.random.default_rng(0)))
    assert chooses.choose(prompted(0, "abc", 30)) == 0
    candidates.sent(0)
    assert chooses.choose(prompted(1, "abd", 40)) == 0      # 20 of 40 tokens are known
    assert chooses.choose(prompted(2, "axy", 30)) != 0      # 10 of 30 are too few: least outstanding
    candidates.leave(0)
    assert chooses.choose(prompted(3, "abc", 30)) != 0


def test_affinity_gives_way_to_an_uneven_load() -> None:
    candidates = ready(2)
    chooses = ROUTERS["prefix-affinity"](Sight(candidates, lambda number: 0, lambda number: 0, (),
                                               np.random.default_rng(0)))
    for index in range(65):
        assert chooses.choose(prompted(index, "abc", 30)) == 0
        candidates.sent(0)
    assert chooses.choose(prompted(65, "abc", 30)) == 1     # 65 against 0: more than 64 ahead


def test_who_belongs_to_no_conversation_goes_where_there_is_least() -> None:
    candidates = ready(3)
    chooses = ROUTERS["session-affinity"](Sight(candidates, lambda number: 0, lambda number: 0, (7, -1, -1, 7),
                                                np.random.default_rng(0)))
    found = []
    for index in range(4):
        found.append(chooses.choose(Request(index, 0, 1, 1)))
        candidates.sent(found[-1])
    assert found == [0, 1, 2, 0]


def test_a_router_ignores_who_hangs_up_and_is_not_there() -> None:
    env = Environment(initial_time=0)
    gone: list[int] = []
    fleet = Fleet(env, lambda number: pytest.fail("nobody is ready"), 1, 0, lambda: None)
    router = Router(env, fleet, rule("random", fleet.candidates), line_for("fcfs", None), lambda request: None,
                    lambda request: None, lambda request: gone.append(request.index))
    waits, stranger = Request(0, 0, 1, 1), Request(1, 0, 1, 1)
    router.submit(waits)
    router.cancel(stranger)
    assert (router.waiting, gone) == (1, [])
    router.cancel(waits)
    router.cancel(waits)
    assert (router.waiting, gone) == (0, [0])
