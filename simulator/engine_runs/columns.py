"""JSON of a benchmark client: one record with an array for each quantity, an entry a request.

`vllm bench serve --save-detailed` writes it, and batchsim under the same names. It knows where a request's arrival
stands in it; what an entry means for an answer is said by `vllm_bench` and `ours`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.errors import InputError

Record = Mapping[str, Any]


def columns(where: str, record: Record, names: Sequence[str]) -> list[list[Any]]:
    """These arrays of the record, all of one length.

    Raises:
        InputError: One is absent, no list, or of another length.
    """
    for name in names:
        if not isinstance(record.get(name), list):
            raise InputError(f"{where}: lacks the array '{name}'{_hint(name)}")
    lengths = {name: len(record[name]) for name in names}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{where}: its arrays differ in length: {told}")
    return [record[name] for name in names]


def _hint(name: str) -> str:
    if name == "start_times":
        return ", without which nobody knows when requests arrived: record it with a newer vllm bench serve"
    return ": run the benchmark with --save-detailed"
