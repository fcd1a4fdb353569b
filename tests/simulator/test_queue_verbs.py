"""The queue's verbs that put requests into another order, by hand."""

from __future__ import annotations

from simulator.batch import LockstepSet
from simulator.memory import Paged
from simulator.request import Request
from simulator.step import Queue


def queue_of(count: int) -> tuple[Queue, list[Request]]:
    """A queue in which so many requests wait."""
    queue = Queue(LockstepSet(1, lambda *_: None))
    requests = [Request(index, 0, 5, 9) for index in range(count)]
    for request in requests:
        queue.wait(request)
    return queue, requests


def running(queue: Queue) -> list[int]:
    assert list(queue.running) == sorted(queue.running)
    assert all(request.order == order for order, request in queue.running.items())
    return [request.index for request in queue.running.values()]


def test_those_who_wait_are_put_into_an_order() -> None:
    queue, (a, b, c) = queue_of(3)
    queue.arrange(request for request in (c, a, b))
    assert [request.index for request in queue.waiting] == [2, 0, 1]


def test_those_who_catch_up_lead_and_those_who_decode_stay_in_the_set() -> None:
    queue, (a, b, c, d) = queue_of(4)
    queue.admit()
    queue.emitted(a, 3)
    for _ in "bcd":
        queue.admit()
    queue.lead([b, c])
    assert running(queue) == [1, 2, 0, 3]
    queue.lead([d])
    assert running(queue) == [3, 1, 2, 0]
    assert [request.index for request in queue.catching_up.values()] == [3, 1, 2]
    for request in (d, b, c):
        queue.emitted(request, 2)
    queue.decoding.advance(2)
    assert [request.index for request in queue.decoding.finish()] == [3, 1, 2]


def test_a_preempted_request_may_go_to_the_tail() -> None:
    memory, (queue, (a, b, _)) = Paged(100, 1), queue_of(3)
    queue.admit()
    queue.admit()
    queue.preempt(a, memory, to_tail=True)
    queue.preempt(b, memory)
    assert [request.index for request in queue.waiting] == [1, 2, 0]
    assert running(queue) == []


def test_one_who_is_not_the_head_may_be_admitted() -> None:
    queue, (_, b, _) = queue_of(3)
    assert queue.admit(b) is b
    assert running(queue) == [1]
    assert [request.index for request in queue.waiting] == [0, 2]


def test_one_who_has_left_is_not_here_to_be_dropped() -> None:
    memory, (queue, (a, b)) = Paged(100, 1), queue_of(2)
    queue.admit()
    queue.emitted(a, 0)
    queue.let_go(a)
    assert not queue.drop(a, memory)
    queue.admit()
    assert queue.drop(b, memory)
    assert not queue.drop(b, memory)
    assert len(queue) == 0
