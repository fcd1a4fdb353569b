"""Search: the fewest that suffices, among whole numbers, where more never suffices less. It knows no replica.

Two numbers are asked at a time, so that two processes have work, and the same ones whatever there are of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Suffices = Callable[[Sequence[int]], Sequence[bool]]
"""Says of several numbers at once whether each suffices."""


def fewest(suffices: Suffices, least: int, guess: int, most: int) -> int | None:
    """The smallest of `least` to `most` that suffices; None if `most` does not.

    The one below it, and it, have been asked, unless it is `least`. The closer the guess, the fewer are asked.
    """
    low, high, reach = least - 1, None, 1
    asked = _pair(min(max(guess - 1, least), most), min(max(guess, least), most))
    while True:
        for number, enough in zip(asked, suffices(asked), strict=True):
            if enough:
                high = number if high is None else min(high, number)
            elif high is None or number < high:
                low = max(low, number)
        if high is None and low >= most:
            return None
        if high is not None and high - low <= 1:
            return high
        asked, reach = _next(low, high, least, most, reach)


def _next(low: int, high: int | None, least: int, most: int, reach: int) -> tuple[list[int], int]:
    """What to ask next: beyond what is known in ever longer strides, or at two thirds of what lies between."""
    if high is None:
        return _pair(min(low + reach, most), min(low + 3 * reach, most)), 4 * reach
    if low < least:
        below = max(high - 3 * reach, least)
        return _pair(below, max(high - reach, least)), 4 * reach
    third = max(1, (high - low) // 3)
    return _pair(low + third, max(low + third, high - third)), reach


def _pair(one: int, other: int) -> list[int]:
    return sorted({one, other})


def highest(suffices: Suffices, least: int, guess: int, most: int) -> int | None:
    """The largest of `least` to `most` that suffices, where less never suffices less; None if `least` does not."""
    found = fewest(lambda numbers: suffices([-number for number in numbers]), -most, -guess, -least)
    return None if found is None else -found
