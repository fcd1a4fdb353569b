"""Mistaken: what a program gave in place of a scenario, a trace or a field, and the call that takes it.

It reads and makes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from simulator.errors import InputError, choose
from simulator.policies import POLICIES
from traces import Trace

READING = ("format", "columns", "unit", "lenient", "limit", "window", "prompts")
"""What reading may say."""


def no_scenario(value: object) -> InputError:
    """The complaint about what was given to `run` and is no Scenario."""
    if isinstance(value, str | os.PathLike):
        name = os.fspath(value)
        return InputError(f"run answers a Scenario, not {name!r}: sim.simulate({name!r}) replays a trace of that name, "
                          f"sim.run(sim.read_scenario({name!r}).scenario()) answers a scenario file")
    return InputError(f"run answers a Scenario, not a value of type {type(value).__name__}: {_instead(value)}")


def _instead(value: object) -> str:
    """The call that takes it."""
    if isinstance(value, Mapping):
        return "sim.simulate(**fields) takes its fields"
    if isinstance(value, Trace) or _is_frame(value):
        return "sim.simulate(trace) replays a Trace"
    if (scenario := getattr(value, "scenario", None)) is not None:
        return f"it has one, so say sim.run(it.scenario{'()' if callable(scenario) else ''})"
    return "sim.simulate(trace, policy) makes one and runs it"


def no_trace(value: object) -> InputError:
    """The complaint about what was given as a trace and is none."""
    must = "trace must be a Trace, a name or a file, not"
    if isinstance(value, os.PathLike):
        return InputError(f"{must} {value!r}: give the path as text, {os.fspath(value)!r}")
    if _is_frame(value):
        return InputError(f'{must} a DataFrame: of columns at (seconds, sorted), prompt and output (tokens), '
                          'traces.Trace("mine", arrival=(frame["at"] * 1e9).astype("int64"), prompt=frame["prompt"], '
                          'output=frame["output"]) makes one')
    return InputError(f"{must} {value!r}")


def _is_frame(value: object) -> bool:
    return type(value).__name__ == "DataFrame"


def check_lists(**found: object) -> None:
    """Refuse a single value, text above all, where several belong."""
    for name, value in found.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} must be a list, such as [{value!r}], not {value!r}")


def check_field(name: str, known: Iterable[str]) -> None:
    """Refuse what is no field of a scenario; say of a setting of `reading` and of a knob where it belongs."""
    if name in (names := tuple(known)):
        return
    if name in READING:
        raise InputError(f'{name} says how a file is read: give it as reading={{"{name}": ...}}')
    if owners := [policy for policy, kind in POLICIES.items() if name in kind.knobs()]:
        raise InputError(f'{name} is a knob of {", ".join(owners)}: give it as knobs={{"{name}": ...}}, or as '
                         f'settings={{"{name}": ...}} where several policies run')
    choose("field of a scenario", name, names, "help(simulator.Scenario)")
