"""The replica and its contract with a policy: what it repeats, what it refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from simpy import Environment
from worlds import play, play_both, trace_of

from cost_models import Constant
from simulator.batch import DecodingSet, ListedSet, LockstepSet
from simulator.errors import InputError, PolicyError, StalledError
from simulator.memory import Memory, Paged
from simulator.memory.base import Chunks
from simulator.policies import Policy, Vllm
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.simulation import simulate
from simulator.step import Queue, Step, Wait


@dataclass
class AllIn(Policy):
    """Everybody is let in at once."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        step = Step([(request, request.lacking) for request in queue.catching_up.values()])
        while queue.waiting:
            head = queue.admit()
            step.chunks.append((head, head.known))
        assert memory.take(queue.decoding, step.chunks)
        return step


def answering(answer: Callable[[AllIn, Queue, Memory, int], object]) -> Policy:
    """A policy that answers so."""
    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        return answer(self, queue, memory, now)

    return type("Odd", (AllIn,), {"plan": plan, "name": "odd"})()


@dataclass
class FourAtATime(AllIn):
    """Asks for four steps at once, as multi-step schedulers do. It cannot know when somebody finishes."""

    at_once: int = 4

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        step = super().plan(queue, memory, now)
        if isinstance(step, Step) and not step.chunks:
            step.times, step.blocked = self.at_once, "batch"
        return step


@pytest.mark.parametrize(("exact", "kind"), [(False, LockstepSet), (True, ListedSet)])
def test_exact_mode_is_the_one_that_walks_over_a_list(exact: bool, kind: type) -> None:
    assert type(play([(0, 2, 2)], AllIn(), exact=exact).replica.decoding) is kind


def test_a_step_may_do_no_more_than_send_somebody_back() -> None:
    def sends_back(policy: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        if now != 10:
            return AllIn.plan(policy, queue, memory, now)
        step = Step()
        step.drop(queue.preempt(queue.youngest, memory))
        return step

    world = play([(0, 4, 3)], answering(sends_back), capacity=160, verify=False)
    assert world.log == [
        "0: 0+4 | emit 0", "10: wait 0 | preempt 0", "20: 0+5 | emit 0", "30: 0+1 | emit 0 | leave 0"]


def test_a_step_is_repeated_as_often_as_it_asks_for() -> None:
    for at_once, steps in ((4, [1, 4, 4, 1]), (2, [1, 2, 2, 2, 2, 1]), (1, [1] * 10)):
        world = play_both([(0, 4, 10)], FourAtATime(at_once=at_once), capacity=16 * 50)
        assert [tick.steps for tick in world.ticks] == steps


def test_a_repeated_step_stops_at_the_first_finish() -> None:
    """Nobody emits more than the own output, whatever a policy asks for; every invariant holds."""
    world = play_both([(0, 4, 7), (0, 4, 3)], FourAtATime(), capacity=16 * 50)
    assert world.tokens(0) == list(range(7))
    assert world.tokens(1) == list(range(3))


def test_a_repeated_step_stops_where_memory_ends() -> None:
    policy = FourAtATime()
    world = play([(0, 15, 4)], policy, capacity=16, fails=True)    # one block: 16 tokens, and one more is asked for
    assert [tick.steps for tick in world.ticks] == [1, 1]
    assert world.record.used.tolist() == [1, 1]


@pytest.mark.parametrize(("answer", "words"), [
    (lambda self, queue, memory, now: "run", "plan"),
    (lambda self, queue, memory, now: Step(), "computes nothing"),
    (lambda self, queue, memory, now: Wait(now), "not later"),
    (lambda self, queue, memory, now: Wait(now - 5), "not later"),
])
def test_an_answer_that_cannot_be_run_is_the_policys_fault(answer: Callable[..., object], words: str) -> None:
    world = play([(7, 4, 3)], answering(answer), capacity=160, fails=True)
    assert isinstance(world.error, PolicyError)
    assert words in str(world.error)
    assert str(world.error).startswith("odd: ")
    assert "\n" not in str(world.error)


def test_a_complaint_names_the_policy_the_instant_and_the_state() -> None:
    def late(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        return AllIn.plan(self, queue, memory, now) if now < 20 else Step(decodes=False)

    world = play([(0, 4, 9), (0, 20, 9), (15, 4, 9)], answering(late), capacity=160, fails=True)
    assert str(world.error) == (
        "odd: planned a step that computes nothing, in step 2 at 20 ns (2 running, 1 waiting, 7 of 10 blocks free; "
        "request 2 is first in line: 4 tokens, 1 block)")


@pytest.mark.parametrize(("tokens", "words"), [
    (0, "planned a chunk of 0 tokens for request 0, which lacks 4, in step 0 at 0 ns"),
    (5, "planned a chunk of 5 tokens for request 0, which lacks 4, in step 0 at 0 ns")])
def test_a_chunk_is_at_least_a_token_and_at_most_what_is_lacking(tokens: int, words: str) -> None:
    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        return Step([(queue.admit(), tokens)])

    world = play([(0, 4, 9)], answering(plan), capacity=160, fails=True)
    assert str(world.error).startswith(f"odd: {words} (1 running, 0 waiting")


def test_who_decodes_has_no_chunk_even_while_the_set_pauses() -> None:
    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        return AllIn.plan(self, queue, memory, now) if not now else Step([(queue.youngest, 1)], decodes=False)

    world = play([(0, 4, 9)], answering(plan), capacity=160, fails=True)
    assert "request 0, which decodes: it takes part without a chunk, in step 1 at 10 ns" in str(world.error)


def test_padding_to_less_than_a_prompt_is_refused() -> None:
    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        step = AllIn.plan(self, queue, memory, now)
        step.pad_to = 3
        return step

    world = play([(0, 4, 9)], answering(plan), capacity=160, fails=True)
    assert "pads to 3 tokens, but request 0 computes 4, in step 0 at 0 ns" in str(world.error)


class Generous(Paged):
    """Gives what it does not have."""

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        self._free -= decoding.demand + sum(self._growth(*chunk) for chunk in chunks)
        return True


class Doubling(Paged):
    """Takes back twice what it gave."""

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        for _ in range(2):
            super().release(request, ahead=ahead, returns=returns)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("memory", "now", "free"), [(Generous(2, 4), 40, -1), (Doubling(9, 4), 50, 11)])
def test_memory_that_is_not_there_is_noticed_in_the_step_that_takes_it(memory: Memory, now: int, free: int,
                                                                       exact: bool) -> None:
    """The first holds three blocks of two at its ninth token. The other has two blocks too many when 1 has left."""
    memory = type(memory)(memory.capacity, 4)
    rows = [(0, 5, 9)] if isinstance(memory, Generous) else [(0, 1, 9), (0, 9, 5)]
    world = play(rows, AllIn(), memory=memory, exact=exact, fails=True)
    assert isinstance(world.error, PolicyError)
    assert str(world.error) == (
        f"custom: holds more memory than there is, or gave back more than it took, in step {now // 10} at {now} ns "
        f"(1 running, 0 waiting, {free} of {memory.capacity} blocks free)")


def test_the_clock_stays_within_64_bits() -> None:
    world = play([(0, 4, 9)], AllIn(), cost=Constant(1 << 60), fails=True)
    assert isinstance(world.error, InputError)
    assert str(world.error) == "the simulated time passes 146 years: check the cost model and the arrivals"
    assert world.record.ends.tolist() == [at << 60 for at in range(1, 5)]


@dataclass
class LetsGoTooEarly(AllIn):
    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        return list(queue.running.values())


def test_who_has_not_finished_cannot_be_let_go() -> None:
    world = play([(0, 4, 3), (0, 4, 1)], LetsGoTooEarly(), capacity=160, fails=True)
    assert isinstance(world.error, PolicyError)
    assert "request 0, which has not finished" in str(world.error)


def test_a_policy_that_never_starts_is_told_as_a_stall() -> None:
    rows = [(0, 4, 3), (20, 4, 3)]
    with pytest.raises(StalledError, match=r"0 of 2 answered \(0 running, 2 waiting"):
        simulate(trace_of(rows), answering(lambda self, queue, memory, now: None), cost_model="constant:1")


def test_memory_that_is_never_asked_for_is_noticed() -> None:
    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> Step:
        step = Step()
        while queue.waiting:
            head = queue.admit()
            step.chunks.append((head, head.known))
        return step

    with pytest.raises((StalledError, PolicyError)):
        simulate(trace_of([(0, 40, 30)]), answering(plan), kv_capacity_tokens=1000, cost_model="constant:1")


def test_a_policy_without_a_plan_says_so() -> None:
    with pytest.raises(PolicyError, match=r"TypeError: Empty does not say what to run"):
        play([(0, 4, 3)], type("Empty", (Policy,), {})())


def test_a_wait_ends_with_an_arrival_or_with_its_time() -> None:
    asked: list[int] = []

    def plan(self: AllIn, queue: Queue, memory: Memory, now: int) -> object:
        asked.append(now)
        return Wait(now + 50) if now < 100 else AllIn.plan(self, queue, memory, now)

    rows = [(0, 4, 1), (30, 4, 1), (30, 4, 1), (80, 4, 1), (130, 4, 1)]
    world = play(rows, answering(plan), capacity=160, verify=False)
    assert asked == [0, 30, 80, 130], "two that come at one instant are seen together"
    assert world.left_at == dict.fromkeys(range(5), 140)


def test_who_arrives_while_it_sleeps_is_served_in_the_same_instant() -> None:
    world = play_both([(0, 4, 2), (500, 4, 2), (500, 2, 2)], AllIn(), capacity=160)
    assert [tick.now for tick in world.ticks] == [0, 10, 500, 510]


def running(kind: type, places: str) -> Queue:
    """A queue of running requests, one a letter: (d)ecoding, (c)atching up or (h)eld, oldest first."""
    queue = Queue(kind(4, lambda *span: None))
    for index, place in enumerate(places):
        queue.waiting.append(Request(index, 0, 4, 9))
        request = queue.admit()
        if place == "c":
            continue
        request._computed, request._generated = 4, 1
        if place == "h":
            del queue.catching_up[request.order]
            queue.hold([request])
        else:
            queue.emitted(request, 5)
    return queue


@pytest.mark.parametrize("kind", [LockstepSet, ListedSet])
class TestTrim:
    def test_tokens_are_taken_from_the_youngest_backwards(self, kind: type) -> None:
        queue = running(kind, "ddcd")
        prompt = queue.running[3]
        step = Step([(prompt, 4)])
        queue.trim(step, 3)
        assert (queue.decoding.size, step.chunks, step.trimmed) == (2, [(prompt, 2)], True)
        assert [request.index for request in queue.catching_up.values()] == [2, 3]

    def test_those_who_lost_their_token_stand_in_running_order(self, kind: type) -> None:
        queue = running(kind, "dcd")
        step = Step([(queue.running[2], 4)])
        queue.trim(step, 6)
        assert (queue.decoding.size, step.chunks) == (0, [])
        assert [request.index for request in queue.catching_up.values()] == [0, 1, 2]

    def test_a_finished_request_that_is_held_has_no_token_to_lose(self, kind: type) -> None:
        queue = running(kind, "dh")
        queue.trim(Step(), 1)
        assert queue.decoding.size == 0, "the decode must lose its token, though a held one is younger"
        assert [request.index for request in queue.catching_up.values()] == [0]


class Odd(Vllm):
    """Breaks its word in the way that a test gives."""

    def __init__(self, spoil) -> None:
        super().__init__(max_num_seqs=4, max_num_batched_tokens=64)
        self.spoil = spoil

    def resolve(self, deployment):
        return self

    def plan(self, queue, memory, now):
        return self.spoil(super().plan(queue, memory, now))


def changed(**fields):
    def spoil(step):
        for name, value in fields.items():
            setattr(step, name, value)
        return step
    return spoil


@pytest.mark.parametrize("fields", [{"chunks": None}, {"chunks": [3]}, {"blocked": "weather"}, {"spent": "two"}])
def test_a_step_that_cannot_be_run_is_told_with_the_policys_name(fields: dict[str, object]) -> None:
    world = play([(0, 4, 3)], Odd(changed(**fields)), fails=True)
    assert isinstance(world.error, PolicyError)
    assert str(world.error).startswith("vllm: ")
    assert "\n" not in str(world.error)


def test_who_waits_for_ever_is_stopped() -> None:
    class Dreamer(Vllm):
        def plan(self, queue, memory, now):
            return Wait(now + 10**9)

    world = play([(0, 4, 3)], Dreamer(max_num_seqs=4, max_num_batched_tokens=64), fails=True)
    assert "has waited 100,000 times since its latest step" in str(world.error)


def test_a_replica_to_which_nobody_listens_serves_and_refuses_all_the_same() -> None:
    class Busy(AllIn):
        max_outstanding = 2

    env, memory = Environment(initial_time=0), Paged(100, 1)
    replica = Replica(env, Busy(), memory, Pricing(Constant(10)), [3, 1, 1])
    for index in range(3):
        replica.submit(Request(index, 0, 4, 3))
    env.run()
    assert (replica.finished, memory.used, len(replica.queue)) == (2, 0, 0)
    assert replica.record.refused.tolist() == [2, 0]
    assert replica.record.freeze().stays.tolist() == [[1, 0, 10], [0, 0, 30]]


def test_memory_of_ones_own_that_cannot_be_given_back_is_told_with_the_policy() -> None:
    class Stuck(Paged):
        def release(self, request: Request, **options: bool) -> None:
            raise KeyError(request.index)

    world = play([(0, 4, 1)], AllIn(), memory=Stuck(100, 1), fails=True)
    assert isinstance(world.error, PolicyError)
    told = "custom: gave a step that cannot be counted (KeyError: 0 in test_replica.py, line "
    assert str(world.error).startswith(told)


def test_an_error_of_a_bundled_policy_is_no_fault_of_anybodys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Vllm, "resolve", fail)
    with pytest.raises(ZeroDivisionError, match="ours"):
        simulate(trace_of([(0, 4, 3)]), "vllm", cost_model="constant:1")
