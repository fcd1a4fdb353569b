"""The rule for each role of a file: what its values must be, and where its window of time lies."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from traces.errors import TraceError, plain
from traces.readers import values
from traces.readers.asked import DAY_NS, Asked, window_ns
from traces.readers.documents import PEEK
from traces.readers.rows import BadRow, Batch, Check, Keep, Split

if TYPE_CHECKING:
    from traces.readers.dialect import Dialect


def rules_of(dialect: "Dialect", names: Mapping[str, str], first: Iterable[object], label: str,
             asked: Asked) -> dict[str, values.Rule]:
    """The rule for each role of `names`; that of the arrivals depends on how the `first` ones are written."""
    unit = _unit(dialect, names, label, asked)
    served: values.Rule = values.count if dialect.fails else values.tokens
    rules: dict[str, values.Rule] = {
        "prompt": served,
        "output": served,
        "max_tokens": values.tokens,
        "tenant": values.name,
        "priority": values.priority,
        "session": values.name,
        "branch": values.name,
        "scope": values.name,
        "id": values.name,
        "parent": values.name,
        "shared": values.count,
        "hash_ids": values.block_ids,
        "hash_block": values.tokens,
        "filled": lambda value: int(value is True),
    }
    if "arrival" in names:
        rules["arrival"] = _time_rule(label, names["arrival"], first, unit)
    if "think" in names:
        rules["think"] = values.gap_in(_known(unit, label, "think", names["think"]))
    return {**rules, **dialect.rules}


def _unit(dialect: "Dialect", names: Mapping[str, str], label: str, asked: Asked) -> str | None:
    """The unit of plain numbers; a caller's own only where the format states none, or for a column that they name."""
    if asked.unit in (None, dialect.unit) or dialect.unit is None or "arrival" in asked.columns:
        return asked.unit or dialect.unit
    raise TraceError(f"{label}: the format {dialect.name} states its own unit, {dialect.unit}: leave unit {asked.unit} "
                     f"out, or say --columns arrival={plain(names.get('arrival', 'NAME'))} with it")


def unit_is_idle(names: Mapping[str, str], rules: Mapping[str, values.Rule], asked: Asked) -> bool:
    """Whether a unit was given for numbers, and there are none: dates, or no times at all."""
    return asked.unit is not None and "think" not in names and rules.get("arrival", values.stamp) is values.stamp


def first_of(rows: Any, split: Split, position: int) -> Iterator[object]:
    """Values of one column on the first rows, as far as they can be split."""
    for row in rows.peek(PEEK):
        try:
            yield from split([row])[position]
        except BadRow:
            continue


def keep_of(dialect: "Dialect", rule: values.Rule | None, first: Iterable[object], label: str, asked: Asked) -> Keep:
    """What to keep; a window is counted from the midnight before the file's first row."""
    if asked.window is None:
        return Keep(dialect.fails, None, asked.limit)
    if rule is None:
        raise TraceError(f"{label}: a window needs arrival times, and there are none")
    start, end = window_ns(asked.window)
    for value in first:
        try:
            midnight = _as_int(rule(value)) // DAY_NS * DAY_NS
        except values.Refused:
            continue
        return Keep(dialect.fails, (midnight + start, midnight + end), asked.limit)
    return Keep(dialect.fails, (start, end), asked.limit)


def checks_of(dialect: "Dialect", names: Mapping[str, str]) -> list[Check]:
    """The rules across columns."""
    prompted = [_prompted(names["prompt"])] if dialect.fails else []
    return [*prompted, *dialect.checks]


def _as_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _prompted(name: str) -> Check:
    """A request with an answer has a prompt; one that failed may have neither."""
    def check(batch: Batch) -> None:
        if any(prompt < 1 <= output for prompt, output in zip(batch["prompt"], batch["output"], strict=True)):
            raise BadRow(name, 0, "must be 1 or more")

    return check


def _time_rule(label: str, name: str, first: Iterable[object], unit: str | None) -> values.Rule:
    for value in first:
        if values.is_stamp(value):
            return values.stamp
        if values.is_number(value):
            return values.time_in(_known(unit, label, "arrival", name))
    return values.stamp if unit is None else values.time_in(unit)


def _known(unit: str | None, label: str, role: str, name: str) -> str:
    if unit is None:
        raise TraceError(
            f"{label}: times in column {plain(name)} are plain numbers, their unit is not guessed: "
            f"give the unit (s, ms, us or ns) beside --columns {role}={plain(name)}"
        )
    return unit
