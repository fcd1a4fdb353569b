"""Admission where every end is known: requests ignore the end-of-sequence token, as in benchmarks, and nothing is
cached.

The engine then plays the future: who has least left ends first and frees its memory for the others. Much bolder than
setting outputs aside. Mirrors: SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulator.request import Request

SPARE = 1
"""Tokens that each request still alive must have left."""


class Completions:
    """Those alive, each as (tokens to generate, tokens held), in the order in which they end."""

    def __init__(self, alive: Iterable[Request]) -> None:
        self._unsorted: list[Request] | None = list(alive)
        self._alive: list[tuple[int, int]] = []

    def join(self, request: Request) -> None:
        """One more is alive, whether that fits or not."""
        assert self._unsorted is not None
        self._unsorted.append(request)

    def fit(self, request: Request, left: int) -> bool:
        """Whether the pool lasts to everybody's end with this request, too; `left` tokens of it are free then."""
        if self._unsorted is None:
            self._insert(request)
        else:
            self._alive = sorted(map(_state, [request, *self._unsorted]), key=lambda state: state[0])
            self._unsorted = None
        freed = 0
        for ended, (to_go, held) in enumerate(self._alive):
            alive = len(self._alive) - ended
            if left + freed - to_go * alive <= SPARE * alive:
                return False
            freed += held
        return True

    def _insert(self, request: Request) -> None:
        """Before the first that ends no sooner; the engine puts one that ends last before the last."""
        state = _state(request)
        later = (at for at, other in enumerate(self._alive) if state[0] <= other[0])
        self._alive.insert(next(later, max(0, len(self._alive) - 1)), state)


def _state(request: Request) -> tuple[int, int]:
    return request.max_tokens - request.generated, request.prompt + request.generated
