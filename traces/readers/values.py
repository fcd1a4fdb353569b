"""One field of a row to one exact integer: token counts, times with a unit, dates with a time.

Whole numbers throughout: no float touches a value, so a time is exact to the nanosecond. Each rule takes a
field of a CSV row (text) or of a JSON row (text, integer, null, ...) and raises Refused with what it broke.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from traces.arrivals import LONGEST_NS, SECOND, UNITS

Rule = Callable[[object], object]

EARLIEST, LATEST = 1970, 2110
"""Years of a date; all of them together fit the longest trace, so differences cannot overflow."""

MOST_TOKENS = 1 << 53
"""Above this a count has passed through a float somewhere, or is not a count."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T](?:[01]\d|2[0-3]):\d\d):([0-5]\d)(?:\.(\d{1,9}))?"
                    r"(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_INTEGERS = re.compile(r" *(?:-?\d{1,19}(?: +|$))*", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_RULE = "is not a date and time (YYYY-MM-DD HH:MM:SS, up to 9 decimals, Z or an offset)"


class Refused(ValueError):
    """A field breaks a rule; the message reads on after the value, such as "must be 1 or more"."""


def tokens(value: object) -> int:
    """A number of tokens: a whole number, 1 to 2^53."""
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 16:
        count = int(value)  # fewer than 16 digits stay below 2^53
    elif type(value) is int and value <= MOST_TOKENS:
        count = value
    else:
        count = _whole(value)
    if count < 1:
        raise Refused("must be 1 or more")
    return count


def plain_tokens(column: Sequence[object]) -> list[int] | None:
    """What `tokens` makes of a whole column of a CSV, at once; None where not all of it is digits and nothing else."""
    try:
        digits = "".join(column)    # type: ignore[arg-type]    # what is no text raises
        if not (digits.isascii() and digits.isdecimal()):
            return None
        counts = list(map(int, column))    # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return counts if min(counts) > 0 and max(counts) <= MOST_TOKENS else None


def _whole(value: object) -> int:
    number = exact(value)
    if number != number.to_integral_value():
        raise Refused("must be a whole number")
    if number > MOST_TOKENS:
        raise Refused("must be at most 2^53")
    return int(number) if number > 0 else 0


def exact(value: object) -> Decimal:
    """The number that `value` spells, digit for digit; NaN and infinities are no numbers here."""
    if type(value) is int:
        return Decimal(value)
    if value is None or value == "":
        raise Refused("is empty")
    if not isinstance(value, str) or not _NUMBER.fullmatch(text := value.strip()):
        raise Refused("is not a number")
    return Decimal(text)


def time_in(unit: str) -> Rule:
    """The rule for times written as plain numbers of `unit`: not negative, rounded to whole ns."""
    power = UNITS[unit]
    latest = Decimal(LONGEST_NS).scaleb(-power)
    hint = f" by unit {unit}: say a finer one if that is meant" if power else ""

    def nanoseconds(value: object) -> int:
        number = exact(value)
        if number < 0:
            raise Refused("must not be negative")
        if number > latest:
            raise Refused(f"is more than 146 years{hint}")
        return int(number.scaleb(power).to_integral_value())

    return nanoseconds


def stamp(value: object) -> int:
    """Nanoseconds since 1970 of a date and time; without a zone it is taken as UTC."""
    match = _STAMP.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise Refused("is empty" if value in (None, "") else _DATE_RULE)
    minute, second, fraction, zone = match.groups()
    nanoseconds = int(fraction.ljust(9, "0")) if fraction else 0
    return _minute(minute, zone) + int(second) * SECOND + nanoseconds


@lru_cache(maxsize=65_536)
def _minute(text: str, zone: str | None) -> int:
    """ns since 1970 of a whole minute; a trace has few of them, so they are remembered."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC) - _offset(zone)
    except (ValueError, OverflowError):
        raise Refused(_DATE_RULE) from None
    if not EARLIEST <= moment.year <= LATEST:
        raise Refused(f"must lie in the years {EARLIEST} to {LATEST}")
    return (moment - _EPOCH) // timedelta(minutes=1) * 60 * SECOND


def _offset(zone: str | None) -> timedelta:
    if zone in (None, "Z"):
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("no such offset")
    size = timedelta(hours=hours, minutes=minutes)
    return -size if zone[0] == "-" else size


def is_stamp(value: object) -> bool:
    """Whether `value` is written as a date and time."""
    return isinstance(value, str) and _STAMP.fullmatch(value.strip()) is not None


def is_number(value: object) -> bool:
    """Whether `value` is a plain number of whatever sign and size."""
    try:
        exact(value)
    except Refused:
        return False
    return True


def priority(value: object) -> int:
    """A whole number; lower is more urgent."""
    number = exact(value)
    if abs(number) > MOST_TOKENS:
        raise Refused("must lie within 2^53 of 0")
    return int(number) if number == number.to_integral_value() else _whole(value)


def name(value: object) -> str:
    """A name: text, or an integer as text; null is the empty name."""
    if type(value) is int:
        return str(value)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable():
        raise Refused("is not a printable name")
    return value


def count(value: object) -> int:
    """A number of tokens that may be 0."""
    return 0 if value in (0, "0") else tokens(value)


def gap_in(unit: str) -> Rule:
    """The rule for a time between two turns; none is 0, as before the first turn."""
    nanoseconds = time_in(unit)
    return lambda value: 0 if value in (None, "") else nanoseconds(value)


def blocks_of(size: int) -> Rule:
    """The rule for tokens that are counted in blocks of `size`."""
    return lambda value: size * count(value)


def block_ids(value: object) -> "array[int]":
    """Ids of prefix blocks: a list of integers that fit 64 bits, or text with blanks between them."""
    if isinstance(value, str):
        value = _integers(value)
    if not isinstance(value, list):
        raise Refused("must be a list of integers")
    if not all(type(item) is int for item in value):
        raise Refused("must hold integers of 64 bits only")
    try:
        return array("q", value)
    except OverflowError:
        raise Refused("must hold integers of 64 bits only") from None


def _integers(text: str) -> list[int]:
    if not _INTEGERS.fullmatch(text):
        raise Refused("must be a list of integers")
    return [int(word) for word in text.split()]
