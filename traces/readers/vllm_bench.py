"""Results of `vllm bench serve --save-result --save-detailed`: one JSON object with a list for each quantity.

Source: vllm/benchmarks/serve.py. A request was sent at its start time, in s of the client's own clock. Older versions
did not save start times; such a file is read without arrivals (`--columns arrival=`). Failed requests have an error or
no output tokens.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow

LISTS = ("input_lens", "output_lens")


def requests(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The requests of a run as flat rows."""
    prompts, outputs = (_list(document, name) for name in LISTS)
    errors = _list(document, "errors") if "errors" in document else [""] * len(prompts)
    timed = {"arrival": _list(document, "start_times")} if "start_times" in document else {}
    if {len(prompts)} != {len(each) for each in (outputs, errors, *timed.values())}:
        raise BadRow("input_lens", len(prompts), "must be as long as output_lens, start_times and errors")
    for at, (prompt, output, error) in enumerate(zip(prompts, outputs, errors, strict=True)):
        yield {"prompt": prompt, "output": 0 if error else output} | {role: each[at] for role, each in timed.items()}


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    found = document.get(name)
    if not isinstance(found, list):
        raise BadRow(name, found, "must be a list, as --save-detailed writes it")
    return found


VLLM_BENCH = Dialect(
    name="vllm-bench",
    about="Results of `vllm bench serve --save-result --save-detailed`",
    columns={role: role for role in ("arrival", "prompt", "output")},
    marks=LISTS,
    expand=requests,
    unit="s",
    fails=True,
)
