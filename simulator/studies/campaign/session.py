"""Session: an open backend, as a campaign sees it, and what all backends say alike. It knows no engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 20
"""How long a cluster may take to answer."""


@dataclass(frozen=True)
class Session:
    """An open backend.

    Attributes:
        cargo: What stands for each of the traces in the arguments of a call.
        run: Takes joblib's delayed calls; gives their results as they come, None for a call whose worker died.
        deaths: Errors with which `run` ends if workers die, and nobody can say under which of the calls.
    """

    cargo: Sequence[Any]
    run: Callable[[Iterator[Any]], Iterator[Any]]
    deaths: tuple[type[Exception], ...] = ()


def first_line(error: BaseException) -> str:
    """What an error says first; its kind if it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__
