"""Reports of guidellm (benchmarks.json): a JSON document with the requests of each benchmark by what became of them.

Source: guidellm's GenerativeRequestStats. Successful requests are read; those with errors and the incomplete ones
count as failed. A report of several benchmarks has them one after another.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow

OUTCOMES = ("successful", "errored", "incomplete")


def requests(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The requests of all benchmarks as flat rows."""
    for benchmark in _list(document, "benchmarks"):
        groups = _object(benchmark, "requests")
        for outcome in OUTCOMES:
            for request in groups.get(outcome) or ():
                yield _row(request, outcome == "successful")


def _row(request: object, successful: bool) -> dict[str, Any]:
    if not isinstance(request, dict):
        raise BadRow("requests", request, "must hold objects")
    start = request.get("request_start_time", request.get("start_time"))
    return {"arrival": start if successful else start or 0, "prompt": request.get("prompt_tokens") or 0,
            "output": request.get("output_tokens") or 0 if successful else 0}


def _list(holder: Mapping[str, Any], name: str) -> list[Any]:
    found = holder.get(name)
    if not isinstance(found, list):
        raise BadRow(name, found, "must be a list")
    return found


def _object(holder: object, name: str) -> Mapping[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, dict) or not all(isinstance(group, list | None) for group in found.values()):
        raise BadRow(name, found, f"must hold lists of requests by outcome ({', '.join(OUTCOMES)})")
    return found


GUIDELLM = Dialect(
    name="guidellm",
    about="Reports of guidellm (benchmarks.json)",
    columns={role: role for role in ("arrival", "prompt", "output")},
    marks=("benchmarks",),
    expand=requests,
    unit="s",
    fails=True,
)
