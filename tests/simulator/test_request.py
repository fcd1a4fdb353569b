"""A request's counters, by hand."""

from __future__ import annotations

from simulator.request import Request


def test_kv_that_comes_back_is_no_longer_elsewhere() -> None:
    request = Request(0, 0, 5, 9)
    assert (request.priority, request.computed, request.generated, request.lost, request.stashed) == (0, 0, 0, 0, 0)
    request.reuse(4)
    request.stash()
    assert (request.computed, request.stashed, request.lacking) == (0, 4, 5)
    request.unstash()
    assert (request.computed, request.stashed, request.lacking) == (4, 0, 1)


def test_what_is_lost_is_the_most_that_ever_was_there() -> None:
    request = Request(0, 0, 5, 9)
    for tokens in (4, 2):
        request.reuse(tokens)
        request.forget()
    assert (request.computed, request.lost) == (0, 4)
