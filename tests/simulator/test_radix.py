"""The radix cache: by hand, and against a plain one that keeps every token by itself."""

from __future__ import annotations

import random

import pytest
from radix_model import PlainRadix

from simulator.memory.radix import Radix
from simulator.memory.tree import Tree, runs_of
from simulator.request import Request


def request(index: int, prompt: int, *prefix: tuple[object, int]) -> Request:
    return Request(index, 0, prompt, 100, prefix=prefix)    # type: ignore[arg-type]


def compute(memory: Radix, one: Request, tokens: int) -> None:
    """One step in which it computes a chunk alone."""
    assert memory.grow(one, tokens)
    one._computed += tokens
    memory.computed([(one, tokens)])


def state(memory: Radix) -> tuple[int, int, int]:
    """Pages that requests hold, that may be found, and that are empty."""
    return memory.used, memory.evictable, memory.free - memory.evictable


def test_a_finished_request_stays_in_the_tree_and_is_found() -> None:
    memory, first, second = Radix(100), request(0, 20, ("a", 16)), request(1, 30, ("a", 16))
    compute(memory, first, 20)
    assert state(memory) == (20, 0, 80)
    memory.release(first)
    assert state(memory) == (0, 20, 80)
    assert memory.cached(second) == 16
    assert memory.demand(second, 30) == 30
    memory.hold(second)
    assert second.computed == 16
    assert state(memory) == (16, 4, 80)


def test_all_but_the_last_token_is_found() -> None:
    memory, first, again = Radix(100), request(0, 20, ("a", 20)), request(1, 20, ("a", 20))
    compute(memory, first, 20)
    assert memory.cached(again) == 19


def test_what_two_computed_at_once_is_kept_once() -> None:
    memory, one, other = Radix(100), request(0, 20, ("a", 16)), request(1, 24, ("a", 16))
    assert memory.grow(one, 20)
    assert memory.grow(other, 24)
    assert state(memory) == (44, 0, 56)
    one._computed, other._computed = 20, 24
    memory.computed([(one, 20), (other, 24)])
    assert state(memory) == (28, 0, 72)
    assert memory.shared_tokens == 16
    memory.release(one)
    assert state(memory) == (24, 4, 72)
    assert memory.shared_tokens == 0


def test_the_least_recently_used_leaf_goes_first_and_whole() -> None:
    memory = Radix(60)
    for index, prompt in enumerate((20, 10, 30)):
        one = request(index, prompt, (index, prompt))
        compute(memory, one, prompt)
        memory.release(one)
    assert memory.cached(request(3, 20, (0, 20))) == 19    # used again: cut before its last token, which goes, too
    compute(memory, request(4, 5), 5)
    assert state(memory) == (5, 50, 5)
    assert memory.cached(request(5, 10, (1, 10))) == 0


def test_a_retracted_request_puts_nothing_new_into_the_tree() -> None:
    memory, one = Radix(100), request(0, 10)
    compute(memory, one, 10)
    one._generated = 1
    assert memory.grow(one, 5)
    one._computed, one._generated = 15, 6
    memory.release(one, returns=True)
    assert state(memory) == (0, 10, 90)
    one.forget()
    assert memory.cached(one) == 10


def test_what_does_not_fit_changes_nothing() -> None:
    memory, one, big = Radix(30), request(0, 20, ("a", 20)), request(1, 60, ("a", 20))
    compute(memory, one, 20)
    before = state(memory)
    assert not memory.grow(big, 40)
    assert (state(memory), big.computed, memory.shared_tokens) == (before, 0, 0)


def test_pages_are_found_whole() -> None:
    memory, one, other = Radix(25, 4), request(0, 19, ("a", 18)), request(1, 30, ("a", 18))
    compute(memory, one, 19)
    assert state(memory) == (5, 0, 20)
    assert memory.cached(other) == 16
    memory.release(one)
    assert state(memory) == (0, 4, 21)    # the last page is not full


def test_deep_and_heavy_branches_come_first() -> None:
    memory = Radix(1000)
    stem = (("s", 10),)
    for index, prefix in enumerate((stem, (*stem, ("left", 20)), (*stem, ("right", 30)), (("alone", 40),))):
        one = request(index, prefix[-1][1] + 1, *prefix)
        compute(memory, one, one.prompt)
        memory.release(one)
    waiting = [request(10, 99), request(11, 99, ("alone", 40)), request(12, 99, *stem, ("left", 20)),
               request(13, 99, *stem), request(14, 99, *stem, ("right", 30)), request(15, 99, *stem, ("right", 30))]
    assert [one.index for one in memory.depth_first(waiting)] == [14, 15, 12, 13, 11, 10]


def test_the_tree_alone() -> None:
    tree, one, other = Tree(), request(0, 50, ("a", 30)), request(1, 50, ("a", 30), ("b", 45))
    assert tree.walk(runs_of(one), 50) is tree.root
    assert tree.insert(runs_of(one), 50)[1] == 0
    assert tree.walk(runs_of(other), 50).end == 30
    assert tree.insert(runs_of(other), 40)[1] == 30
    assert tree.evictable == 60
    assert tree.evict(1) == 20    # what only `one` has: the walks have used all else since


def made(rng: random.Random, index: int) -> Request:
    """A request with some of a few prefixes, each the beginning of longer ones."""
    prefix: list[tuple[str, int]] = []
    name, end, prompt = "", 0, rng.randint(1, 40)
    for _ in range(rng.randint(0, 4)):
        name += rng.choice("ab")
        end = min(prompt, end + (3, 7, 4, 6)[len(name) - 1])
        prefix.append((name, end))
    return request(index, prompt, *prefix)


@pytest.mark.parametrize("page", [1, 4])
@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_plain_one(seed: int, page: int) -> None:
    rng = random.Random(seed)
    capacity = rng.choice((20, 40, 80))
    fast, plain = Radix(capacity, page), PlainRadix(capacity * page, page)
    running: list[Request] = []
    for index in range(400):
        one = made(rng, index) if not running or rng.random() < 0.4 else rng.choice(running)
        if one not in running:
            enter(fast, plain, one, running)
        else:
            rng.choice((read, generate, finish, retract))(fast, plain, one, running)
        if rng.random() < 0.1:
            wanted = rng.randint(0, 10)
            fast.evict(wanted)
            plain.evict(wanted * page)
        assert fast.evictable * page == plain.evictable
        assert fast.free * page == plain.empty + plain.evictable
        assert fast.shared_tokens == plain.shared


def fits(fast: Radix, plain: PlainRadix, one: Request, tokens: int) -> bool:
    """Grow both by as much as the request asks for, if that is there."""
    need = plain.paged(one.computed + tokens) - plain.paged(one.computed)
    there = need <= plain.empty + plain.evictable
    assert fast.grow(one, tokens) == there
    if there:
        plain.take(need)
        one._computed += tokens
    return there


def enter(fast: Radix, plain: PlainRadix, one: Request, running: list[Request]) -> None:
    assert fast.cached(one) == plain.cached(one)
    fast.hold(one)
    plain.hold(one)
    running.append(one)
    read(fast, plain, one, running)


def read(fast: Radix, plain: PlainRadix, one: Request, running: list[Request]) -> None:
    tokens = min(one.lacking, 15)
    if tokens and fits(fast, plain, one, tokens):
        fast.computed([(one, tokens)])
        plain.computed(one)


def generate(fast: Radix, plain: PlainRadix, one: Request, running: list[Request]) -> None:
    one._generated += one.lacking == 0
    if one.lacking == 1:
        fits(fast, plain, one, 1)


def finish(fast: Radix, plain: PlainRadix, one: Request, running: list[Request]) -> None:
    leave(fast, plain, one, running, returns=False)


def retract(fast: Radix, plain: PlainRadix, one: Request, running: list[Request]) -> None:
    leave(fast, plain, one, running, returns=True)
    one.forget()
    enter(fast, plain, one, running)


def leave(fast: Radix, plain: PlainRadix, one: Request, running: list[Request], returns: bool) -> None:
    running.remove(one)
    plain.release(one, returns)
    fast.release(one, returns=returns)
