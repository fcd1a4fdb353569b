"""What is written behind a flag, to a value: numbers with inf, key=value, lists. Every refusal is one line."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isinf, isnan
from typing import Any, TypeVar

from simulator.errors import InputError

Number = TypeVar("Number", int, float)
SHOWN = 60


def number(flag: str, text: str | None) -> float | None:
    """A number, inf included; None stays None."""
    if text is None:
        return None
    value = _numeral(float, text)
    if value is None or isnan(value):
        raise InputError(f"{flag} must be a number, not {shown(text)}")
    if isinf(value) and not _is_inf(text.strip().lstrip("+-")):
        raise InputError(f"{flag} is too large: give inf if it has no bound, not {shown(text)}")
    return value


def count(flag: str, text: str | None) -> int | None:
    """A whole number; None stays None."""
    if text is None:
        return None
    value = _numeral(int, text)
    if value is None:
        raise InputError(f"{flag} must be a whole number, not {shown(text)}")
    return value


def limit(flag: str, text: str | None, unlimited: float | None = None) -> float | None:
    """A whole number, or `unlimited` where inf says that there is no bound."""
    return unlimited if text is not None and _is_inf(text) else count(flag, text)


def scalar(text: str) -> Any:
    """A knob's value as it is meant: true and false, a whole number, a number (inf included), else the word."""
    if text.lower() in ("true", "false", "yes", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        value = _numeral(kind, text)
        if value is not None and (abs(value) != inf or _is_inf(text.lstrip("+-"))):
            return value
    return text


def pairs(flag: str, texts: Iterable[str] | None, mark: str = "=", *, split: bool = False,
          empty: bool = False) -> dict[str, str]:
    """KEY=VALUE, given any number of times.

    With `split` also several in one, between commas; with `empty` a value may be left out.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        for part in text.split(",") if split else [text]:
            key, middle, value = (piece.strip() for piece in part.partition(mark))
            if not (key and middle and (value or empty)):
                raise InputError(f"{flag} takes NAME{mark}VALUE, not {shown(part)}")
            if key in found:
                raise InputError(f"{flag} says {shown(key)} twice")
            found[key] = value
    return found


def settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """Knobs from --set."""
    return {key: scalar(value) for key, value in pairs("--set", texts).items()}


def goodput(texts: Iterable[str] | None) -> dict[str, float]:
    """Service objectives in milliseconds from --goodput."""
    found = pairs("--goodput", texts, ":", split=True)
    return {metric: number(f"--goodput {metric}", value) or 0.0 for metric, value in found.items()}


def numbers(flag: str, texts: Iterable[str] | None) -> dict[str, float]:
    """NAME=X, several between commas or one after the other."""
    return {name: number(f"{flag} {name}", value) or 0.0
            for name, value in pairs(flag, texts, split=True).items()}


def classes(texts: Iterable[str] | None) -> dict[str, dict[str, float]]:
    """What is due to tenants, from --classes."""
    found: dict[str, dict[str, float]] = {}
    for tenant, told in pairs("--classes", texts).items():
        entries = pairs(f"--classes {tenant}", [told], ":", split=True)
        found[tenant] = {name: _whole(number(f"--classes {tenant} {name}", value)) for name, value in entries.items()}
    return found


def _whole(value: float | None) -> float:
    """A number as it is shortest written: 0 and not 0.0."""
    return int(value) if value is not None and value % 1 == 0 else value or 0.0


def overheads(texts: Iterable[str] | None) -> dict[str, tuple[float, float]]:
    """Host times from --scheduler-overhead, by policy or "all"."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts or ():
        policy, middle, rest = text.rpartition(":")
        numbers = [number("--scheduler-overhead", word) or 0.0 for word in words("--scheduler-overhead", rest)]
        if len(numbers) > 2 or (middle and not policy):
            raise InputError(f"--scheduler-overhead takes [POLICY:]MS,MS, not {shown(text)}")
        if (policy or "all") in found:
            raise InputError(f"--scheduler-overhead says {shown(policy or 'all')} twice")
        found[policy or "all"] = (numbers[0], numbers[1] if len(numbers) == 2 else 0.0)
    return found


def weights(flag: str, texts: Iterable[str] | None) -> dict[str, float]:
    """NAME or NAME=X, several between commas or one after the other: the number of each name, 1 if none is given."""
    parts = [part for text in texts or () for part in text.split(",")]
    for part in parts:
        if not part.strip():
            raise InputError(f"{flag} takes NAME or NAME=X, not {shown(part)}")
    return numbers(flag, [part if "=" in part else f"{part}=1" for part in parts])


def percentiles(flag: str, text: str) -> tuple[float, ...]:
    """Numbers from 0 to 100 between commas."""
    found = tuple(number(flag, word) or 0.0 for word in words(flag, text))
    for percent in found:
        if not 0 <= percent <= 100:
            raise InputError(f"{flag} lie between 0 and 100, not at {percent:g}")
    return found


def words(flag: str, text: str) -> tuple[str, ...]:
    """Words between commas."""
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise InputError(f"{flag} takes words between commas, not {shown(text)}")
    return found


def shown(text: str) -> str:
    """What was written, quoted and on one line, cut if long."""
    quoted = repr(text)
    return quoted if len(quoted) <= SHOWN else f"{quoted[:SHOWN]}..."


def _numeral(kind: type[Number], text: str) -> Number | None:
    """What a numeral of plain digits is worth; None for any other text. Python itself also reads 1_000 and \u0663."""
    if not text.isascii() or "_" in text:
        return None
    try:
        return kind(text)
    except ValueError:
        return None


def _is_inf(text: str) -> bool:
    return text.lower() in ("inf", "infinity")
