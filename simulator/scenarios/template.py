"""The commented YAML of a scenario: every field with what it is, those that nobody said behind a #.

All of it comes from the docstrings and defaults of Scenario and of its policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from textwrap import wrap
from typing import Any

from simulator.errors import InputError
from simulator.policies.making import policy_class
from simulator.scenario import FIELDS, Scenario
from simulator.scenarios.docs import described
from simulator.scenarios.recording import plain
from simulator.scenarios.yaml_text import parse

WIDTH = 100
SHOWN = ("trace", "policy", "load", "model", "gpu", "tensor_parallel_size", "goodput", "seed")
"""Fields that stand without a # even if nobody said them, because everybody decides them."""
HEADINGS = {"trace": "Trace and policy", "num_prompts": "Traffic", "max_concurrency": "Client",
            "max_tokens": "Lengths", "model": "Model and GPUs", "cost_model": "Cost of a step",
            "gpu_memory_utilization": "Memory", "goodput": "Objectives and prices", "seed": "The run itself"}
"""By the field before which they stand."""


def template(said: Mapping[str, Any], notes: Sequence[str] = (), file: str = "scenario.yaml") -> str:
    """The text of a scenario file.

    Args:
        said: Fields that somebody said.
        notes: Lines for the head of the file.
        file: What it will be called.
    """
    head = [f"A scenario of batchsim. To run it: batchsim run --scenario {file}",
            "What stands behind a # is at its default. Flags beside --scenario win over this file.", *notes]
    lines = [*_comment(head), *_body(said)]
    return "\n".join(lines) + "\n"


def _body(said: Mapping[str, Any]) -> Iterator[str]:
    docs = described(Scenario)
    for name in FIELDS:
        if name in HEADINGS:
            yield from ("", f"# ---- {HEADINGS[name]} ----")
        yield ""
        yield from _comment([docs.get(name, "")])
        if name == "knobs":
            yield from _knobs(str(said.get("policy", Scenario.policy)), said.get(name, {}))
        else:
            value = plain(said.get(name, default_of(name)))
            yield from _entry(name, value, active=name in said or (name in SHOWN and value != {}))


def default_of(name: str) -> Any:
    """The default of a field."""
    field = next(each for each in fields(Scenario) if each.name == name)
    return field.default if field.default_factory is MISSING else field.default_factory()


def _knobs(policy: str, said: Mapping[str, Any]) -> Iterator[str]:
    """The knobs of the policy, each with what it is."""
    kind = policy_class(policy)
    docs = described(kind)
    yield "knobs:" if said else "# knobs:"
    for name, default in kind.knobs().items():
        yield from (f"  {line}" for line in _comment([docs.get(name, "")], WIDTH - 2))
        line = f"{name}: {_value(said.get(name, default))}"
        yield f"  {line}" if name in said else f"  # {line}"


def _entry(name: str, value: Any, *, active: bool) -> Iterator[str]:
    mark = "" if active else "# "
    if not (isinstance(value, Mapping) and value):
        yield f"{mark}{name}: {_value(value)}"
        return
    yield f"{mark}{name}:"
    for key, each in value.items():
        yield f"{mark}  {_value(key)}: {_value(each)}"


def _comment(paragraphs: Sequence[str], width: int = WIDTH) -> list[str]:
    return [f"# {line}" for text in paragraphs for line in wrap(text, width - 2, break_long_words=False,
                                                                  break_on_hyphens=False)]


def _value(value: Any) -> str:
    """A value in one line of YAML."""
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return value if value == "inf" or _is_plain(value) else _quoted(value)
    if isinstance(value, float) and value == int(value):
        return f"{value:.1f}" if abs(value) < 1e15 else repr(value)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    """In quotes, and what cannot be seen by its number."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


def _is_plain(text: str) -> bool:
    """Whether a word needs no quotes, inside of a flow or not."""
    try:
        return bool(parse(f"a: {text}\nb: [{text}]", "").content == {"a": text, "b": [text]})
    except InputError:
        return False
