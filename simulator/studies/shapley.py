"""Shapley values: what each player adds on the mean over all orders in which the players may come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial

Set = frozenset[str]


def subsets(players: Sequence[str]) -> Iterator[Set]:
    """All sets of these players, the smallest first."""
    for count in range(len(players) + 1):
        yield from map(frozenset, combinations(players, count))


def prefixes(order: Sequence[str]) -> list[Set]:
    """The sets that grow one by one in this order, from the empty one."""
    return [frozenset(order[:count]) for count in range(len(order) + 1)]


def shapley_value(player: str, players: Sequence[str], worth: Mapping[Set, float]) -> float:
    """The mean over all orders of what the player adds to those before it, given the worth of every set.

    Source: Shapley, A value for n-person games, 1953. The values of all players add up to the worth of all together
    less that of nobody; who never adds anything has none.
    """
    others = [each for each in players if each != player]
    orders = factorial(len(players))
    return sum(factorial(len(before)) * factorial(len(others) - len(before)) / orders
               * (worth[before | {player}] - worth[before]) for before in subsets(others))
