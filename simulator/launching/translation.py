"""Translate a launch command: every flag is mapped to the scenario, or told to be left aside and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.errors import InputError
from simulator.launching.engine import Engine, Fields, Flag, NotModelled
from simulator.launching.models import fields_of
from simulator.launching.sglang import SGLANG
from simulator.launching.tensorrt_llm import TENSORRT_LLM
from simulator.launching.tgi import TGI
from simulator.launching.vllm import VLLM
from simulator.launching.words import Given, command_of, flags_of

ENGINES = (VLLM, SGLANG, TGI, TENSORRT_LLM)
EAGER = "the host time of launching every kernel, which makes small steps longer: scheduler_overhead may state it"
"""What a step costs without CUDA graphs, beyond the padding that it is spared."""


@dataclass
class Launch:
    """What a launch command says.

    Attributes:
        engine: That it starts.
        fields: Of Scenario.
        mapped: By flag as it was written, the field or knob that it set.
        not_modelled: By flag, what it would change in the engine that the simulation does not know; one of them may
            set a field, too.
        aside: Flags that change no schedule.
        before: Words in front of the engine's name.
    """

    engine: Engine
    fields: Fields
    mapped: dict[str, str] = field(default_factory=dict)
    not_modelled: dict[str, str] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def told(self) -> list[str]:
        """What became of the flags, a line each."""
        lines = [f"{flag} sets {target}" for flag, target in self.mapped.items()]
        lines += [f"{flag} is not modelled: {why}" for flag, why in self.not_modelled.items()]
        if self.aside:
            lines.append(f"without effect here: {', '.join(self.aside)}")
        if self.before:
            lines.append(f"not looked at: {' '.join(self.before)}")
        return lines


def translate(line: str, known: Mapping[str, Any] | None = None) -> Launch:
    """The scenario of a command line.

    Args:
        line: Such as "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 256".
        known: Fields that are said otherwise, such as the GPU, which no command line tells; they win.

    Raises:
        InputError: It starts no known engine, has a flag that the engine does not have, a value that cannot be, or a
            model whose shape is not bundled.

    Example:
        >>> translate("vllm serve facebook/opt-13b --max-num-seqs 64").fields
        {'policy': 'vllm', 'model': 'opt-13b', 'knobs': {'max_num_seqs': 64}}
    """
    known = known or {}
    engine, words, before = command_of(line, ENGINES)
    found, extra = Launch(engine, {"policy": engine.policy}, before=before), dict[str, Any]()
    given = list(flags_of(engine, words))
    _take_model(found, given, known)
    for flag in given:
        if not _names_model(engine, flag):
            _take(found, extra, flag)
    whole = engine.finish({**found.fields, **known}, extra)
    found.fields = {name: found.fields.get(name, value) for name, value in whole.items()
                    if name in found.fields or name not in known}
    return found


def _names_model(engine: Engine, given: Given) -> bool:
    return given.known is None or given.known.name == engine.model_flag


def _take_model(found: Launch, given: list[Given], known: Mapping[str, Any]) -> None:
    names = [flag.values[0] for flag in given if _names_model(found.engine, flag)]
    if len(names) > 1:
        raise InputError(f"--from: names two models, {names[0]} and {names[1]}: which one is it?")
    if "model" in known:
        found.aside += names
        return
    if not names:
        raise InputError(f"--from: names no model: add --{found.engine.model_flag}, or give batchsim --model")
    fields = fields_of(names[0])
    found.fields |= fields
    found.mapped[names[0]] = ", ".join(f"{name}: {getattr(value, 'name', value)}" for name, value in fields.items())


def _take(found: Launch, extra: Fields, given: Given) -> None:
    """Put a flag where it belongs."""
    meaning = given.known and given.known.meaning
    if isinstance(meaning, Flag):
        _set(found, extra, given, meaning)
    elif meaning is None:
        found.aside.append(given.written)
    else:
        found.not_modelled[given.written] = meaning


def _set(found: Launch, extra: Fields, given: Given, flag: Flag) -> None:
    text = " ".join(given.values)
    try:
        value = flag.read(text) if given.values else flag.when_set
    except NotModelled as why:
        found.not_modelled[f"{given.written} {text}"] = str(why)
        return
    except (ValueError, OverflowError):
        raise InputError(f"--from: {given.written} cannot be {text!r}") from None
    name, inner = flag.path
    if name == "extra":
        extra[str(inner)] = value
    elif inner is None:
        found.fields[name] = value
    else:
        found.fields[name] = {**found.fields.get(name, {}), inner: value}
    if (name, value) == ("cuda_graph_sizes", "none"):
        found.not_modelled[given.written] = EAGER
    found.mapped[f"{given.written} {text}".rstrip()] = _told(flag, value)


def _told(flag: Flag, value: Any) -> str:
    name, inner = flag.path
    if name == "extra":
        return {"one": "nothing: 1 is all there is"}.get(str(inner), "the size of the KV cache")
    return f"{flag.target}: {str(value).lower() if isinstance(value, bool) else value}"
