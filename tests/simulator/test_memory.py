"""Memory by itself: blocks and address spaces, the few calls a policy may make, and what they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.batch import ListedSet, LockstepSet
from simulator.errors import InputError
from simulator.memory import UNLIMITED, Contiguous, Memory, Paged
from simulator.memory.ahead import PagedAhead
from simulator.memory.contiguous import RESERVES, reservation, size_rule
from simulator.memory.radix import Radix
from simulator.memory.reserved import Reserved
from simulator.memory.spaces import SPACES, Buddy, Counted, FirstFit
from simulator.request import Request
from simulator.standing import standing
from simulator.step import Queue

PLACES = [name for name, space in SPACES.items() if space is not Counted]
"""Those in which an interval has an address."""


def request(index: int = 0, prompt: int = 5, computed: int = 0, max_tokens: int = 10) -> Request:
    made = Request(index, 0, prompt, max_tokens)
    made.order, made._computed = index + 1, computed
    return made


def nobody() -> ListedSet:
    return ListedSet(4, lambda *span: None)


def contiguous(capacity: int, placement: str = "first-fit") -> Contiguous:
    return Contiguous(capacity, lambda each: each.prompt + each.max_tokens,
                      lambda prompt, output, max_tokens: prompt + max_tokens, placement)


class TestPaged:
    def test_grows_by_whole_blocks_and_refuses_without_a_change(self) -> None:
        memory, one = Paged(3, 4), request()
        assert memory.grow(one, 5)
        assert (memory.used, memory.free) == (2, 1)
        one._computed = 5
        assert memory.grow(one, 3)
        assert memory.used == 2, "the second block has room for three more"
        one._computed = 8
        assert not memory.grow(one, 5)
        assert memory.used == 2
        memory.release(one)
        assert (memory.used, memory.free) == (0, 3)

    def test_takes_all_or_nothing(self) -> None:
        memory = Paged(3, 4)
        one, two = request(0), request(1)
        assert not memory.take(nobody(), [(one, 8), (two, 8)])
        assert memory.used == 0
        assert memory.take(nobody(), [(one, 8), (two, 4)])
        assert memory.used == 3

    @pytest.mark.parametrize("kind", [LockstepSet, ListedSet])
    def test_a_stretch_takes_as_many_steps_as_fit(self, kind: Any) -> None:
        memory, members = Paged(5, 4), kind(4, lambda *span: None)
        for index, computed in enumerate((3, 4)):
            one = request(index, computed, computed)
            one._generated = 1
            memory.grow(request(index), computed)
            members.join(one, 20)
        assert memory.used == 2
        assert memory.take(members, [])                       # contexts 4 and 5
        assert memory.used == 3
        assert memory.foresee(members, 9) == [4, 4, 4, 5]    # 5 and 6, ..., 8 and 9; 9 and 10 would be six blocks
        assert memory.used == 3, "to foresee takes nothing"
        memory.extend(2)
        assert memory.free == 0

    def test_footprint_leaves_out_the_last_token(self) -> None:
        lengths = [np.array(column) for column in ([4, 4, 1], [1, 2, 1], [9, 9, 9])]
        assert Paged(9, 4).footprint(*lengths).tolist() == [1, 2, 1]

    @given(st.lists(st.integers(1, 70), min_size=1, max_size=9), st.sampled_from([1, 3, 16]), st.integers(1, 50),
           st.integers(0, 40))
    def test_a_stretch_counts_what_single_steps_count(self, contexts: list[int], size: int, steps: int,
                                                      room: int) -> None:
        held = sum(-(-context // size) for context in contexts)
        counted = []
        for kind in (LockstepSet, ListedSet):
            memory, members = Paged(held + room, size), kind(size, lambda *span: None)
            for index, context in enumerate(contexts):
                assert memory.grow(request(index, context), context)
                members.join(request(index, context, context), 99)
            assert memory.free == room
            taken = []
            if kind is ListedSet:
                while len(taken) < steps and memory.take(members, []):
                    taken.append(memory.used)
                    members.advance(1)
            elif memory.take(members, []):
                taken = [memory.used, *(memory.foresee(members, steps - 1) if steps > 1 else [])]
                memory.extend(taken[-1] - taken[0])
            counted.append((taken, memory.free))
        assert counted[0] == counted[1]


class TestContiguous:
    def test_reserves_once_and_keeps_it(self) -> None:
        memory, one = contiguous(40), request(prompt=5, max_tokens=10)
        assert memory.grow(one, 5)
        assert (memory.used, memory.promised) == (15, 15)
        assert memory.grow(one, 9)
        assert memory.take(nobody(), [(one, 5)])
        assert memory.foresee(nobody(), 3) == [15, 15, 15]
        assert memory.used == 15
        memory.release(one)
        assert (memory.used, memory.promised) == (0, 0)

    def test_nobody_computes_without_a_reservation(self) -> None:
        assert not contiguous(40).take(nobody(), [(request(), 1)])

    def test_says_when_it_is_full_and_when_it_is_in_pieces(self) -> None:
        memory = contiguous(45)
        people = [request(index, 5, max_tokens=10) for index in range(3)]
        assert all(memory.grow(one, 5) for one in people)
        assert not memory.grow(request(3, 1, max_tokens=1), 1)
        assert memory.shortage == "memory"
        memory.release(people[0])
        memory.release(people[2])
        wide = request(4, 10, max_tokens=10)
        assert memory.free == 30
        assert not memory.grow(wide, 10), "two holes of 15 are no 20"
        assert memory.shortage == "fragmentation"
        memory.release(people[1])
        assert memory.grow(wide, 10)

    def test_buddy_can_be_in_pieces_with_most_of_it_free(self) -> None:
        memory = contiguous(64, "buddy")
        small = [request(index, 8, max_tokens=8) for index in range(4)]
        assert all(memory.grow(one, 8) for one in small)
        for one in (small[0], small[2]):
            memory.release(one)
        assert (memory.free, memory._space.largest()) == (32, 16)
        assert not memory.grow(request(9, 9, max_tokens=9), 9)
        assert memory.shortage == "fragmentation"

    def test_the_longest_run_is_that_of_an_empty_memory(self) -> None:
        assert contiguous(45).longest_run() == 45
        assert contiguous(45, "buddy").longest_run() == 32
        assert contiguous(0).longest_run() == contiguous(0, "buddy").longest_run() == 0

    @pytest.mark.parametrize(("rule", "tokens"), [("model", 2048), ("declared", 107), ("exact", 32), ("pow2", 39)])
    def test_what_each_rule_reserves(self, rule: Any, tokens: int) -> None:
        """An output of 25 tokens gets 32: SOSP 2023."""
        one = request(0, 7, max_tokens=100)
        assert size_rule(rule, 2048, np.array([25]))(one) == tokens

    def test_one_request_and_many_follow_the_same_rules(self) -> None:
        outputs = np.arange(1, 200)
        prompts = np.full_like(outputs, 7)
        for rule in RESERVES:
            size_of = size_rule(rule, 2048, outputs)    # type: ignore[arg-type]
            alone = [size_of(request(index, 7, max_tokens=100)) for index in range(len(outputs))]
            assert reservation(rule, 2048, prompts, outputs, prompts * 0 + 100).tolist() == alone    # type: ignore[arg-type]

    def test_an_unknown_placement_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"unknown placement 'best' \(known: first-fit, buddy, counted\)"):
            contiguous(4, "best")


class TestSpaces:
    def test_first_fit_takes_the_lowest_hole_that_is_long_enough(self) -> None:
        space = FirstFit(20)
        assert [space.take(size) for size in (4, 6, 4)] == [(0, 4), (4, 6), (10, 4)]
        space.give(0, 4)
        space.give(10, 4)    # merges with the tail
        assert space.largest() == 10
        assert space.take(5) == (10, 5)
        assert space.take(3) == (0, 3)
        assert space.take(6) is None
        assert space.take(5) == (15, 5)

    def test_first_fit_merges_on_both_sides(self) -> None:
        space = FirstFit(9)
        for _ in range(3):
            space.take(3)
        for address in (0, 6, 3):
            space.give(address, 3)
        assert space.take(9) == (0, 9)

    def test_buddy_splits_and_merges(self) -> None:
        space = Buddy(16)
        assert [space.take(size) for size in (3, 1, 5)] == [(0, 4), (4, 1), (8, 8)]
        assert space.take(4) is None
        space.give(4, 1)
        assert space.take(4) == (4, 4)
        for address, length in ((0, 4), (4, 4), (8, 8)):
            space.give(address, length)
        assert space.take(16) == (0, 16)

    def test_buddy_of_an_odd_capacity_has_its_binary_parts(self) -> None:
        space = Buddy(13)
        assert [space.take(size) for size in (8, 4, 1)] == [(0, 8), (8, 4), (12, 1)]
        assert space.take(1) is None
        for address, length in ((8, 4), (12, 1), (0, 8)):
            space.give(address, length)
        assert space.largest() == 8

    def test_a_table_of_slots_has_no_holes(self) -> None:
        space = Counted(20)
        for size in (4, 6, 4):
            assert space.take(size) is not None
        space.give(0, 4)
        space.give(0, 4)
        assert space.largest() == 14
        assert space.take(15) is None
        assert space.take(14) == (0, 14), "first fit has holes of 4 and 10 there"

    @pytest.mark.parametrize("placement", PLACES)
    def test_an_endless_space_ends_nobody(self, placement: str) -> None:
        space = SPACES[placement](UNLIMITED)
        places = [space.take(1 << 20) for _ in range(100)]
        assert len(set(places)) == 100
        for place in places:
            assert place is not None
            space.give(*place)
        assert space.largest() == UNLIMITED

    @pytest.mark.parametrize("placement", PLACES)
    @given(data=st.data(), capacity=st.integers(0, 70))
    def test_intervals_never_overlap_and_all_come_back(self, placement: str, data: st.DataObject,
                                                       capacity: int) -> None:
        space, held, cells = SPACES[placement](capacity), [], [False] * capacity
        for size, back in data.draw(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=40)):
            if back and held:
                address, length = held.pop(size % len(held))
                space.give(address, length)
                cells[address:address + length] = [False] * length
                continue
            largest, place = space.largest(), space.take(size)
            wanted = int(space.lengths(np.array([size]))[0])
            assert (place is None) == (wanted > largest)
            if place:
                address, length = place
                assert length == wanted >= size
                assert 0 <= address <= address + length <= capacity
                assert not any(cells[address:address + length])
                cells[address:address + length] = [True] * length
                held.append(place)
        for place in held:
            space.give(*place)
        assert space.largest() == SPACES[placement](capacity).largest()

    def test_buddy_lengths_are_what_it_takes(self) -> None:
        sizes = np.array(sorted({max(1, (1 << power) + by) for power in range(50) for by in (-1, 0, 1)}))
        taken = [Buddy(UNLIMITED).take(int(size))[1] for size in sizes]    # type: ignore[index]
        assert Buddy(1).lengths(sizes).tolist() == taken


def test_what_requests_hold_when_they_hold_most() -> None:
    prompt, output, declared = (np.array(lengths) for lengths in ([4, 4, 3], [1, 2, 2], [1, 2, 7]))
    assert Reserved(9, 4).footprint(prompt, output, declared).tolist() == [1, 2, 3]    # 4, 5 and 9 tokens
    assert PagedAhead(9, 4, ahead=1).footprint(prompt, output, declared).tolist() == [1, 2, 2]    # 4, 6 and 5
    assert Radix(9, 4).footprint(prompt, output, declared).tolist() == [1, 2, 1]    # 4, 5 and 4
    assert PagedAhead(9, 4, declared=True).footprint(prompt, output, declared).tolist() == [2, 2, 3]    # 5, 6 and 10


def test_nobody_computes_without_a_reservation() -> None:
    memory, one, other = Reserved(9, 4), request(0), request(1)
    assert memory.grow(one, 5)
    assert memory.take(nobody(), [(one, 5)])
    assert not memory.take(nobody(), [(one, 5), (other, 5)])


def test_a_memory_that_forgets_says_that_nothing_outlives_its_holder() -> None:
    memory = Paged(9, 4)
    assert memory.grow(request(), 5)
    assert memory.levels() == (2, -1, 0)


def test_an_interval_that_fills_its_hole_leaves_nothing_between_its_neighbours() -> None:
    space = FirstFit(10)
    assert [space.take(size) for size in (4, 3, 3)] == [(0, 4), (4, 3), (7, 3)]
    space.give(0, 4)
    assert space.take(4) == (0, 4)
    space.give(4, 3)
    space.give(7, 3)
    assert space.largest() == 6


def test_as_much_as_is_free_but_in_two_holes_is_fragmentation() -> None:
    memory = Contiguous(10, lambda each: each.max_tokens, lambda prompt, output, max_tokens: max_tokens)
    held = [request(index, max_tokens=size) for index, size in enumerate((3, 4, 3))]
    assert all(memory.grow(each, 1) for each in held)
    memory.release(held[0])
    memory.release(held[2])
    for size, shortage in ((6, "fragmentation"), (7, "memory")):
        assert not memory.grow(request(3, max_tokens=size), 1)
        assert memory.shortage == shortage
    assert not memory.take(nobody(), [(held[1], 1), (held[0], 1)])


def test_the_power_of_two_is_that_of_the_output() -> None:
    outputs = np.array([1, 2, 8, 9])
    size_of = size_rule("pow2", 20, outputs)
    assert [size_of(request(index)) for index in range(4)] == [5 + 1, 5 + 2, 5 + 8, 20]


def test_room_that_is_there_ahead_is_neither_taken_again_nor_forgotten() -> None:
    memory, one = PagedAhead(9, 4), request()
    assert memory.grow(one, 8)
    assert (memory.growth(one, 8), memory.growth(one, 9), memory.free) == (0, 1, 7)
    one._computed = 8
    assert memory.take(nobody(), [(one, 1)])
    assert memory.free == 6
    memory.release(one, ahead=1)
    assert memory.free == 9


def test_the_size_of_a_block_where_nobody_says_so() -> None:
    assert (Paged(9).block_size, Reserved(9).block_size) == (16, 1)


def test_room_ahead_that_is_not_there_changes_nothing() -> None:
    memory, one = PagedAhead(2, 4), request()
    assert not memory.grow(one, 9)
    assert (memory.free, memory.pledged, memory.room(one), memory.held(one)) == (2, 0, 0, 0)


@pytest.mark.parametrize(("memory", "unbounded"), [
    (Paged(UNLIMITED // 16 - 1, 16), True), (Paged(UNLIMITED // 48 - 1, 48), True), (PagedAhead(UNLIMITED, 32), True),
    (Reserved(UNLIMITED), True), (Paged(1000, 1 << 20), False)])
def test_a_pool_without_bound_is_one_in_blocks_too(memory: Memory, unbounded: bool) -> None:
    assert memory.unbounded == unbounded
    assert standing(Queue(nobody()), memory).endswith("memory without bound") == unbounded


def test_who_is_swapped_out_comes_in_before_those_who_wait() -> None:
    memory, queue, (one, two) = Paged(9, 4), Queue(nobody()), (request(0), request(1))
    for each in (one, two):
        queue.wait(each)
    queue.admit()
    assert memory.grow(one, 5)
    one._computed = 5
    queue.swap_out(one, memory)
    assert standing(queue, memory) == ("0 running, 1 waiting, 1 swapped out, 9 of 9 blocks free; request 0 is first in "
                                       "line: 6 tokens, 2 blocks")
