"""Records of AIPerf (profile_export.jsonl): JSON lines with metadata and metrics of a request each.

Source: AIPerf's guide to its export files. The arrival is when the client began to send (request_start_ns); another
time of the metadata may be asked for by its name, such as credit_issued_ns. A request with an error failed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow


def records(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One record as a flat row, with its metadata beside."""
    metadata, metrics = document.get("metadata"), document.get("metrics")
    if not isinstance(metadata, dict) or not isinstance(metrics, dict | None):
        raise BadRow("metadata", metadata, "must be an object, and metrics too")
    failed = document.get("error") is not None
    yield metadata | {
        "prompt": 0 if failed else _value(metrics, "input_sequence_length"),
        "output": 0 if failed else _value(metrics, "output_sequence_length"),
        "session": metadata.get("x_correlation_id"),
    }


def _value(metrics: Mapping[str, Any] | None, name: str) -> Any:
    metric = (metrics or {}).get(name)
    if not isinstance(metric, dict) or "value" not in metric:
        raise BadRow(name, metric, "must be an object with a value")
    return metric["value"]


AIPERF = Dialect(
    name="aiperf",
    about="Records of AIPerf (profile_export.jsonl)",
    columns={"arrival": "request_start_ns", "prompt": "prompt", "output": "output", "session": "session"},
    marks=("metadata", "metrics"),
    expand=records,
    unit="ns",
    fails=True,
)
