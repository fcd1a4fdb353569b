"""Parquet tables, read with pyarrow (the extra `parquet`), a batch of rows at a time.

Values become what the rules know: numbers with a point become text, times become text of a date, so no value passes
through a float of ours. Only the columns that are wanted are read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from traces.errors import TraceError, plain

PARQUET_MAGIC = b"PAR1"
ROWS = 16_384
FREE_ROWS, MOST_ROWS = 10_000_000, 30
"""So many rows may be in any file, and beyond that so many for each of its bytes."""


def parquet_names(path: Path, label: str) -> list[str]:
    """The columns of the table."""
    return [str(name) for name in _opened(path, label).schema_arrow.names]


def parquet_rows(path: Path, label: str, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with its place, counted from 1."""
    table, number = _opened(path, label), 0
    wanted = [name for name in dict.fromkeys(names) if name in table.schema_arrow.names]
    with_faults = table.iter_batches(batch_size=ROWS, columns=wanted)
    while (batch := _next(with_faults, label)) is not None:
        columns = [_plain(batch.column(name)) for name in wanted]
        for row in zip(*columns, strict=True):
            number += 1
            yield f"row {number}", dict(zip(wanted, row, strict=True))


def _opened(path: Path, label: str) -> Any:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise TraceError(f"{label}: a Parquet table; pip install 'batchsim[parquet]' reads it") from None
    try:
        table = parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError, ValueError) as fault:
        raise TraceError(f"{label}: damaged Parquet table ({_first_line(fault)})") from None
    if table.metadata.num_rows > max(FREE_ROWS, MOST_ROWS * path.stat().st_size):
        raise TraceError(f"{label}: expands to {table.metadata.num_rows:,} rows, as no trace of its size does")
    return table


def _next(batches: Iterator[Any], label: str) -> Any:
    import pyarrow as arrow

    try:
        return next(batches, None)
    except (arrow.ArrowException, OSError, ValueError) as fault:
        raise TraceError(f"{label}: damaged Parquet table ({_first_line(fault)})") from None


def _first_line(fault: Exception) -> str:
    return plain((str(fault).splitlines() or [type(fault).__name__])[0])


def _plain(column: Any) -> list[Any]:
    """The values of a column as the rules of `values` take them."""
    import pyarrow as arrow

    if arrow.types.is_timestamp(column.type):
        text: list[Any] = column.cast(arrow.timestamp(column.type.unit)).cast(arrow.string()).to_pylist()    # in UTC
        return text
    values = column.to_pylist()
    if arrow.types.is_floating(column.type) or arrow.types.is_decimal(column.type):
        return [None if one is None else str(one) for one in values]
    return values
