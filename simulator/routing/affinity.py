"""Rules that send alike requests to one replica, so that it finds their KV in its cache.

They remember where requests went, and ask no replica what it still has.
"""

from __future__ import annotations

from collections.abc import Hashable

from simulator.request import Request
from simulator.routing.base import Rule, Sight

MATCH = 0.5
"""Share of the prompt that must be known somewhere before a request follows it."""
MOST_AHEAD, MOST_TIMES = 64, 1.5
"""A replica is overloaded with so many requests more, and so many times as many, as the one that has fewest."""


class SessionAffinity(Rule):
    """The replica that had the turn before; least outstanding requests for a first turn.

    A conversation moves for good when its replica takes no request. Requests without one go by their number alone.
    """

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight)
        self._home: dict[int, int] = {}    # conversation -> number of its replica

    def choose(self, request: Request) -> int:
        session = self._sight.sessions[request.index]
        home = self._home.get(session)
        if home is None or home not in self._candidates:
            home = self._least_outstanding()
        if session >= 0:
            self._home[session] = home
        return home


class PrefixAffinity(Rule):
    """The replica that got the longest known beginning of the prompt, if it is half of it and the load is even.

    Else the one with the fewest requests outstanding. What a replica has evicted since is not known here.
    Source: the cache_aware policy of the SGLang router, whose thresholds on match and imbalance these are; where it
    falls back to the replica with the smallest tree, this rule takes the one with the fewest requests.
    """

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight)
        self._owner: dict[Hashable, int] = {}    # piece of a prefix -> number of the replica that got it last

    def choose(self, request: Request) -> int:
        number = self._match(request)
        if number is None or self._is_overloaded(number):
            number = self._least_outstanding()
        self._owner.update((piece, number) for piece, _ in request.prefix)
        return number

    def _match(self, request: Request) -> int | None:
        """Who got the longest known beginning and takes requests, if it is long enough."""
        for piece, upto in reversed(request.prefix):
            if upto < MATCH * request.prompt:
                return None
            if (owner := self._owner.get(piece)) is not None and owner in self._candidates:
                return owner
        return None

    def _is_overloaded(self, number: int) -> bool:
        has, fewest = self._candidates.outstanding[number], self._candidates.fewest()
        return has > fewest + MOST_AHEAD and has > MOST_TIMES * fewest
