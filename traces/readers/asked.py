"""What a caller may ask of a reader, checked: columns, unit, window, limit, and how prompts are to be understood."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from traces.arrivals import SECOND, UNITS
from traces.errors import TraceError, shown, unknown

ROLES = ("arrival", "prompt", "output", "max_tokens", "tenant", "priority", "session", "think", "id", "parent")
"""Roles that a caller may map to a column."""
SPELLED = {"s": ("sec",), "ms": ("mil", "msec"), "us": ("mic", "usec", "\u00b5"), "ns": ("nan", "nsec")}
"""How units begin that are written out."""
PROMPTS = ("cumulative", "increments")
DAY_NS = 86_400 * SECOND
_WINDOW = re.compile(r"(\d{1,4}):([0-5]\d)(?::([0-5]\d))?-(\d{1,4}):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """How to read a file; see `traces.load`."""

    columns: Mapping[str, str]
    unit: str | None = None
    lenient: bool = False
    limit: int | None = None
    window: str | None = None
    prompts: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for role in self.columns:
            if role not in ROLES:
                raise unknown("role in columns", role, ROLES)
        if self.unit is not None and self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS, _meant(self.unit))
        if self.prompts is not None and self.prompts not in PROMPTS:
            raise unknown("kind of prompts", self.prompts, PROMPTS)
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise TraceError(f"limit must be 1 or more rows, not {shown(self.limit)}")
        if self.window is not None:
            window_ns(self.window)


def _meant(unit: object) -> str:
    """The unit that somebody spells out; empty if none is known by such a name."""
    word = str(unit).lower()
    return next((short for short, starts in SPELLED.items() if word.startswith(starts)), "")


def window_ns(text: str) -> tuple[int, int]:
    """Start and end of "FROM-TO" in ns after midnight; both are HH:MM or HH:MM:SS, and hours may exceed 24."""
    match = _WINDOW.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise TraceError(f"a window is FROM-TO, such as 10:00-11:00 or 10:00:30-10:05:00, not {shown(text)}")
    parts = [int(part or 0) for part in match.groups()]
    start, end = (((hours * 60 + minutes) * 60 + seconds) * SECOND
                  for hours, minutes, seconds in (parts[:3], parts[3:]))
    if start >= end:
        raise TraceError(f"the window {text} ends before it starts; hours after midnight go on with 24")
    return start, end
