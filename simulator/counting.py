"""Counting: so many of something, in words that fit the number."""

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
