"""Reserved memory and its trie of prompts, against closed numbers and a trie that is written token by token."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.memory.prompts import PromptCached
from simulator.memory.reserved import Reserved
from simulator.memory.trie import Trie, common, cut, length
from simulator.request import Request

Key = tuple[object, ...]


def request(index: int, prompt: int, output: int = 1, **prefix: int) -> Request:
    return Request(index, 0, prompt, output, prefix=tuple(prefix.items()))


# Reserved

def test_a_reservation_is_prompt_and_declared_output_without_the_last_token() -> None:
    memory = Reserved(10, 4)
    one = request(0, 5, 4)    # 8 tokens
    assert memory.demand(one, 1) == 2
    assert memory.grow(one, 5)
    assert (memory.used, memory.free, memory.promised) == (2, 8, 8)
    assert memory.grow(one, 99), "whatever it asks for later, it has already"
    assert not memory.grow(request(1, 30, 4), 1)
    assert memory.take(None, [(one, 1)])    # type: ignore[arg-type]
    assert memory.foresee(None, 3) == [2, 2, 2]    # type: ignore[arg-type]
    memory.release(one)
    assert (memory.used, memory.promised) == (0, 0)


# Texts

def test_texts_are_cut_and_compared_by_blocks() -> None:
    text = [("a", 0, 3), ("b", 3, 5)]
    assert length(text) == 5
    assert cut(text, 0) == ([], text)
    assert cut(text, 3) == ([("a", 0, 3)], [("b", 3, 5)])
    assert cut(text, 4) == ([("a", 0, 3), ("b", 3, 4)], [("b", 4, 5)])
    assert cut(text, 9) == (text, [])
    assert common(text, [("a", 0, 2), ("c", 2, 9)]) == 2
    assert common(text, [("a", 0, 3), ("b", 3, 9)]) == 5
    assert common(text, [("c", 0, 3)]) == 0
    assert common(text, [("c", 0, 3), ("b", 3, 5)]) == 0, "where the beginnings differ, nothing is in common"
    assert cut([*text, ("c", 5, 9)], 6) == ([*text, ("c", 5, 6)], [("c", 6, 9)])


# The trie

def test_the_leaf_touched_the_longest_ago_is_evicted_first_and_from_its_end() -> None:
    trie = Trie()
    assert trie.insert([("a", 0, 4)]) == 4
    assert trie.insert([("b", 0, 3)]) == 3
    trie.find([("a", 0, 1)])
    assert trie.evict(2) == 2
    assert (trie.match([("b", 0, 3)])[0], trie.match([("a", 0, 4)])[0]) == (1, 4)
    assert trie.evict(3) == 3
    assert (trie.match([("b", 0, 3)])[0], trie.match([("a", 0, 4)])[0]) == (0, 2)
    assert trie.evict(9) == 2
    assert trie.blocks == 0


def test_who_is_pinned_stays_with_all_above_it() -> None:
    trie = Trie()
    trie.insert([("a", 0, 4), ("x", 4, 6)])
    trie.insert([("a", 0, 4), ("y", 4, 9)])
    node, found = trie.find([("a", 0, 4), ("x", 4, 5)])
    trie.pin(node)
    assert (found, trie.blocks, trie.locked) == (5, 11, 6)
    assert trie.evict(99) == 5
    trie.unpin(node)
    assert trie.locked == 0
    assert trie.evict(99) == 6


def test_who_is_let_go_twice_is_evicted_once() -> None:
    trie = Trie()
    trie.insert([("a", 0, 4)])
    for _ in range(2):
        node, _ = trie.find([("a", 0, 4)])
        trie.pin(node)
        trie.unpin(node)
    assert (trie.evict(9), trie.blocks, trie.evict(9)) == (4, 0, 0)


def test_two_who_share_two_blocks_beside_one_of_their_own() -> None:
    memory = PromptCached(20, 4)
    one, two, three = (request(index, 9, 4, p=8) for index in range(3))    # 12 tokens in 3 blocks
    assert (memory.cached(one), memory.demand(one, 9)) == (0, 3)
    assert memory.grow(one, 9)
    memory.release(one)
    assert (memory.empty, memory.evictable, memory.cached(two), memory.demand(two, 1)) == (18, 2, 8, 3)
    assert memory.grow(two, 1)
    assert (memory.empty, memory.evictable, memory.cached(three), memory.demand(three, 1)) == (17, 0, 8, 1)
    assert memory.grow(three, 1)
    assert (memory.used, memory.empty, memory.shared_tokens, memory.promised) == (4, 16, 8, 16)


# The memory against tokens one by one

@dataclass(eq=False)
class Part:
    """A node of the reference: its tokens a list, its blocks as many."""

    tokens: list[Key]
    parent: Part | None
    touched: int
    number: int
    pins: int = 0
    children: list[Part] = field(default_factory=list)

    def way(self) -> list[Part]:
        return [self, *self.parent.way()] if self.parent else []


class ByTokens:
    """The allocator as it reads in the engine: every block a token or a row of them, every node looked at each time."""

    def __init__(self, capacity: int, size: int) -> None:
        self.size, self.empty, self.time, self.count = size, capacity, 0, 0
        self.root = Part([], None, 0, 0)
        self.parts: list[Part] = []
        self.held: dict[int, tuple[Part, int, int]] = {}

    def key(self, who: Request) -> list[Key]:
        """The blocks of a prompt as what each of their tokens is."""
        def token(at: int) -> Key:
            return next(((name, at) for name, end in who.prefix if at < end), (who.index, "own", at))
        tokens = [token(at) for at in range(who.prompt)]
        return [tuple(tokens[at:at + self.size]) for at in range(0, who.prompt - self.size + 1, self.size)]

    def walk(self, key: list[Key], touch: bool) -> tuple[Part, int, int]:
        part, before, same = self.root, 0, 0
        while same == len(part.tokens):
            rest = key[before + same:]
            child = next((each for each in part.children if rest and each.tokens[0] == rest[0]), None)
            if child is None:
                break
            part, before = child, before + same
            same = next((at for at, (one, other) in enumerate(zip(child.tokens, rest, strict=False)) if one != other),
                        min(len(child.tokens), len(rest)))
            if touch:
                part.touched = self.time
        return part, before, same

    def add(self, tokens: list[Key], parent: Part) -> Part:
        self.count += 1
        part = Part(tokens, parent, self.time, self.count)
        parent.children.append(part)
        self.parts.append(part)
        return part

    def insert(self, key: list[Key]) -> int:
        self.time += 1
        part, before, same = self.walk(key, touch=True)
        missing = key[before + same:]
        if not missing:
            return 0
        if same < len(part.tokens):
            parent = part.parent
            assert parent is not None
            parent.children.remove(part)
            upper = self.add(part.tokens[:same], parent)
            upper.children, part.parent, part.tokens = [part], upper, part.tokens[same:]
            part = upper
        self.add(missing, part)
        return len(missing)

    def locked(self) -> set[int]:
        return {id(part) for pinned in self.parts if pinned.pins for part in pinned.way()}

    def free(self) -> int:
        locked = self.locked()
        return self.empty + sum(len(part.tokens) for part in self.parts if id(part) not in locked)

    def evict(self, blocks: int) -> None:
        while blocks > 0:
            leaves = [part for part in self.parts if not part.pins and not part.children]
            if not leaves:
                return
            leaf = min(leaves, key=lambda part: (part.touched, part.number))
            lost = min(blocks, len(leaf.tokens))
            leaf.tokens = leaf.tokens[:len(leaf.tokens) - lost]
            blocks, self.empty = blocks - lost, self.empty + lost
            if not leaf.tokens:
                assert leaf.parent is not None
                leaf.parent.children.remove(leaf)
                self.parts.remove(leaf)

    def grow(self, who: Request) -> int | None:
        """Tokens found, or None if there is no room."""
        self.time += 1
        part, before, same = self.walk(self.key(who), touch=True)
        part.pins += 1
        found = before + same
        need = -(-(who.prompt + who.max_tokens - 1) // self.size) - found
        self.evict(need - self.empty)
        if need > self.empty:
            part.pins -= 1
            return None
        self.empty -= need
        self.held[who.index] = (part, found, need)
        return min(found * self.size, who.prompt - 1)

    def release(self, who: Request, returns: bool) -> None:
        part, found, own = self.held.pop(who.index)
        part.pins -= 1
        self.empty += own
        if not returns and who.prompt > found * self.size:
            self.empty -= self.insert(self.key(who))


REQUESTS = st.lists(st.tuples(
    st.sampled_from(("grow", "release", "give back")), st.integers(1, 14), st.integers(1, 6), st.integers(0, 2),
    st.integers(0, 12), st.integers(0, 12)), max_size=40)


@settings(max_examples=300)
@given(REQUESTS, st.integers(1, 3), st.integers(5, 30))
def test_every_answer_is_that_of_a_trie_of_tokens(moves: list[tuple[str, int, int, int, int, int]], size: int,
                                                  capacity: int) -> None:
    memory, reference = PromptCached(capacity, size), ByTokens(capacity, size)
    there: list[Request] = []
    for index, (move, prompt, output, group, shared, more) in enumerate(moves):
        if move == "grow":
            known = min(prompt, shared), min(prompt, max(shared, more))
            who = Request(index, 0, prompt, output, prefix=((f"top{group % 2}", known[0]), (f"sub{group}", known[1])))
            cached, demand, free = memory.cached(who), memory.demand(who, prompt), memory.free
            found = reference.grow(who)
            assert memory.grow(who, prompt) == (found is not None)
            if found is not None:
                assert found == who.computed == cached
                assert free - memory.free == demand
                there.append(who)
            else:
                assert (memory.free, who.computed) == (free, 0)
        elif there:
            who = there.pop(prompt % len(there))
            for each in (memory, reference):
                each.release(who, returns=move == "give back")
        assert memory.free == reference.free()
        assert memory.evictable == reference.free() - reference.empty
        own = sum(-(-(each.prompt + each.max_tokens - 1) // size) for each in there)
        assert memory.used * size + memory.shared_tokens == own * size, "shared blocks count once for each holder"
        assert memory.promised == sum(each.prompt + each.max_tokens - 1 for each in there) - memory.shared_tokens


def test_a_refusal_has_made_it_give_up_what_it_could() -> None:
    memory = PromptCached(10)
    old = request(0, 6)
    assert memory.grow(old, 6)
    memory.release(old)
    assert (memory.evictable, memory.free) == (6, 10)
    assert not memory.grow(request(1, 11), 11)
    assert (memory.evictable, memory.free) == (0, 10)


@pytest.mark.parametrize("returns", [False, True])
def test_only_prompts_stay_and_only_of_those_who_do_not_come_again(returns: bool) -> None:
    memory = PromptCached(20)
    one = request(0, 6, 5)
    assert memory.grow(one, 6)
    memory.release(one, returns=returns)
    assert memory.evictable == (0 if returns else 6)


def test_a_prompt_that_was_found_whole_is_not_touched_again_when_its_request_leaves() -> None:
    memory = PromptCached(20)
    a, b = (request(index, 5, 1, **{name: 5}) for index, name in enumerate("ab"))
    again = [request(2, 5, 1, a=5), request(3, 5, 1, b=5)]
    for who in (a, b, *again):
        assert memory.grow(who, 5)
        if who in (a, b):
            memory.release(who)
    for who in reversed(again):
        memory.release(who)
    assert memory.grow(request(4, 13), 13), "which takes 3 blocks from a, looked up before b"
    assert (memory.cached(a), memory.cached(b)) == (2, 4)


def test_who_holds_a_reservation_has_room_for_whatever_it_asks() -> None:
    memory, one = PromptCached(3, 4), request(0, 9, 4)
    assert memory.grow(one, 9)
    one._computed = 9
    assert memory.grow(one, 99)
    assert (memory.used, memory.free, memory.promised, one.computed) == (3, 0, 12, 9)
