"""The decoding set: the aggregate against the plain list, call by call, and the counters of its members."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.batch import ListedSet, LockstepSet
from simulator.request import Request


def member(index: int, prompt: int) -> Request:
    """One that has just emitted its first token."""
    request = Request(index, 0, prompt, 99)
    request.order, request._computed, request._generated = index, prompt, 1
    return request


def ignore(index: int, first: int, last: int) -> None: ...


@pytest.mark.parametrize("kind", [LockstepSet, ListedSet])
class TestEither:
    def test_counters_of_a_member_settle_when_read(self, kind: Any) -> None:
        members, one = kind(4, ignore), member(0, 5)
        members.join(one, 9)
        members.advance(1)
        members.advance(2)
        assert (one.computed, one.generated, one.known, one.lacking, one.decoding) == (8, 4, 9, 1, True)
        members.leave(one)
        members.advance(5)
        assert (one.computed, one.generated, one.known, one.lacking, one.decoding) == (8, 4, 9, 1, False)

    def test_sums_follow_joins_steps_and_leaves(self, kind: Any) -> None:
        members, one, two = kind(4, ignore), member(0, 5), member(1, 8)
        members.join(one, 9)
        members.advance(2)
        members.join(two, 9)
        assert (members.size, members.context) == (2, 7 + 8)
        assert members.demand == 1, "8 tokens are two full blocks; 7 are not"
        assert members.demands(5) == [1, 0, 0, 1, 1]
        members.leave(one)
        assert (members.size, members.context, members.demand) == (1, 8, 1)

    def test_spans_run_from_the_first_token_to_the_last(self, kind: Any) -> None:
        spans: list[tuple[int, int, int]] = []
        members, one, two = kind(4, lambda *span: spans.append(span)), member(0, 5), member(1, 8)
        members.advance(3)    # three steps in which they were computed as prompts
        members.join(one, 2)
        members.join(two, 7)
        members.advance(2)
        assert [request.index for request in members.finish()] == [0]
        members.leave(two)
        assert spans == [(0, 2, 4), (1, 2, 4)]

    def test_a_pause_is_a_step_without_a_token(self, kind: Any) -> None:
        spans: list[tuple[int, int, int]] = []
        members, one, two = kind(4, lambda *span: spans.append(span)), member(0, 5), member(1, 7)
        members.advance(1)
        members.join(one, 3)            # first token in step 0
        members.advance(1)
        before = (members.turn, members.size, members.context, members.demand, members.steps_to_finish())
        members.pause()                 # step 2
        members.pause(2)
        assert (members.turn, members.size, members.context, members.demand, members.steps_to_finish()) == before
        assert (one.computed, one.generated, members.finish()) == (6, 2, [])
        members.join(two, 9)            # first token in step 4, which is a pause
        members.advance(2)
        assert members.finish() == [one]
        members.pause()
        members.leave(two)
        assert spans == [(0, 0, 6), (1, 4, 6)], "a span ends with its last token, not with the pause after it"
        assert (two.computed, two.generated) == (9, 3)

    def test_who_leaves_in_the_pause_in_which_it_joined_has_emitted_one_token(self, kind: Any) -> None:
        spans: list[tuple[int, int, int]] = []
        members, one = kind(4, lambda *span: spans.append(span)), member(0, 5)
        members.advance(2)
        members.pause()
        members.join(one, 4)
        members.pause(3)
        members.leave(one)
        assert spans == [(0, 2, 2)]

    def test_who_leaves_at_once_has_emitted_one_token(self, kind: Any) -> None:
        spans: list[tuple[int, int, int]] = []
        members, one = kind(4, lambda *span: spans.append(span)), member(0, 5)
        members.advance(1)
        members.join(one, 2)
        members.leave(one)
        assert spans == [(0, 0, 0)]

    def test_finishers_come_oldest_admission_first(self, kind: Any) -> None:
        members = kind(4, ignore)
        people = [member(order, 4) for order in (7, 3, 5)]
        for one in people:
            members.join(one, 2)
        assert members.steps_to_finish() == 2
        members.advance(1)
        assert members.finish() == []
        members.advance(1)
        assert [one.order for one in members.finish()] == [3, 5, 7]
        assert members.size == members.context == 0

    def test_one_who_left_and_came_back_ends_later(self, kind: Any) -> None:
        members, one = kind(4, ignore), member(0, 4)
        members.join(one, 3)
        members.advance(1)
        members.leave(one)
        members.advance(1)           # a step without it
        one._computed += 1
        one._generated += 1
        members.join(one, 1)         # it caught up in that step
        assert members.steps_to_finish() == 1
        members.advance(1)
        assert members.finish() == [one]
        assert (one.generated, one.computed) == (4, 7)


ACTIONS = st.lists(st.tuples(st.sampled_from(["join", "join", "advance", "advance", "pause", "leave", "return"]),
                             st.integers(0, 50)), max_size=60)


@given(size=st.sampled_from([1, 2, 5, 16]), actions=ACTIONS)
@settings(max_examples=300)
def test_the_aggregate_equals_the_list(size: int, actions: list[tuple[str, int]]) -> None:
    """Whatever is done to both, both answer alike. People leave, come back with a new order, and finish."""
    pairs = []
    for kind in (LockstepSet, ListedSet):
        spans: list[tuple[int, int, int]] = []
        pairs.append((kind(size, lambda *span, spans=spans: spans.append(span)), spans, [], []))
    for order, (action, number) in enumerate(actions):
        answers = []
        for members, spans, inside, outside in pairs:
            if action == "join":
                one = Request(order, 0, 1 + number, 99)
                one.order, one._computed, one._generated = order, 1 + number, 1
                members.join(one, 1 + number % 7)
                inside.append(one)
            elif action == "leave" and inside:
                one = inside.pop(number % len(inside))
                members.leave(one)
                outside.append(one)
            elif action == "return" and outside:
                one = outside.pop(number % len(outside))
                one.order = order
                members.join(one, 2 + number % 5)
                inside.append(one)
            elif action == "pause":
                members.pause(1 + number % 3)
            elif action == "advance" and members.size:
                members.advance(1 + number % members.steps_to_finish())
                done = members.finish()
                inside[:] = [one for one in inside if one not in done]
                answers.append([one.index for one in done])
            answers.append((members.turn, members.size, members.context, members.demand, members.demands(7),
                            members.steps_to_finish() if members.size else None, sorted(spans),
                            [(one.index, one.computed, one.generated) for one in (*inside, *outside)]))
        half = len(answers) // 2
        assert answers[:half] == answers[half:]
