"""OpenTelemetry spans of generative AI, as a collector's file exporter writes them (OTLP JSON).

Source: the semantic conventions for generative AI spans (gen_ai.*), their present and former names, and the JSON
encoding of OTLP, in which 64-bit integers are text. A span without token counts is of something else, such as a tool;
one with the status of an error failed. Every span counts its whole prompt.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from traces.readers import values
from traces.readers.dialect import Dialect
from traces.readers.rows import BadRow

PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
ERROR = (2, "STATUS_CODE_ERROR")


def spans(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of an export that count tokens, as flat rows."""
    for resource in _objects(document, "resourceSpans"):
        for scope in _objects(resource, "scopeSpans"):
            for span in _objects(scope, "spans"):
                yield from _row(span)


def _row(span: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    facts = {fact.get("key"): _value(fact.get("value")) for fact in _objects(span, "attributes")}
    status = span.get("status")
    failed = isinstance(status, dict) and status.get("code") in ERROR
    prompt, output = _first(facts, PROMPT), _first(facts, OUTPUT)
    if prompt is None and output is None and not (failed and "gen_ai.operation.name" in facts):
        return
    yield {"arrival": span.get("startTimeUnixNano"), "prompt": (prompt or 0) if failed else prompt,
           "output": 0 if failed else output, "max_tokens": facts.get("gen_ai.request.max_tokens"),
           "session": facts.get("gen_ai.conversation.id")}


def _first(facts: Mapping[Any, Any], names: Iterable[str]) -> Any:
    return next((facts[name] for name in names if name in facts), None)


def _value(value: object) -> Any:
    """The one value inside of a typed value; integers may be text."""
    return next(iter(value.values()), None) if isinstance(value, dict) else None


def _objects(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = holder.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadRow(name, found, "must be a list of objects")
    return found


OTEL = Dialect(
    name="otel",
    about="OpenTelemetry spans of generative AI (OTLP JSON)",
    columns={role: role for role in ("arrival", "prompt", "output", "max_tokens", "session")},
    marks=("resourceSpans",),
    expand=spans,
    unit="ns",
    rules={"max_tokens": lambda value: 0 if value is None else values.tokens(value)},
    fails=True,
)
