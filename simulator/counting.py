"""Counting: so many of something, in words that fit the number, and numbers as people write them."""

from __future__ import annotations


def counted(count: float, what: str) -> str:
    """So many of something, named in the singular.

    Example:
        >>> counted(1, "batch"), counted(0, "step"), counted(2500, "batch")
        ('1 batch', '0 steps', '2,500 batches')
    """
    if count == 1:
        return f"1 {what}"
    return f"{count:,} {what}{'es' if what.endswith(('ch', 'sh', 'x', 's')) else 's'}"


def plainly(value: float, digits: int = 3) -> str:
    """A number to so many digits, and to more where it has more before the point: never as a power of ten.

    Example:
        >>> plainly(0.01234), plainly(99.96), plainly(5871.2), plainly(10000, 6)
        ('0.0123', '100', '5,871', '10,000')
    """
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:,.{digits}g}"
