"""A fingerprint of a trace's columns, so that two results can tell whether they are about the same requests."""

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traces.columns import Int64
    from traces.trace import Trace


def digest(trace: "Trace") -> str:
    """16 hex digits that change when any column changes; name and source do not count."""
    state = hashlib.sha256()
    for column in ("arrival", "prompt", "output", "max_tokens"):
        _feed(state, column, getattr(trace, column))
    for column in ("priority", "parent", "think", "shared", "original"):
        if (values := getattr(trace, column)) is not None:
            _feed(state, column, values)
    if trace.hash_ids is not None:
        _feed(state, "starts", trace.hash_ids.starts)
        _feed(state, "ids", trace.hash_ids.values)
    sessions = () if trace.session is None else ("session", trace.session)
    state.update(repr(("tenant", trace.tenant, "hash", trace.hash_block, None, *sessions)).encode())
    return str(state.hexdigest())[:16]


def _feed(state: Any, column: str, values: "Int64 | None") -> None:
    state.update(f"{column}:{'none' if values is None else len(values)};".encode())
    if values is not None:
        state.update(values.astype("<i8").tobytes())
