"""Elsewhere: what to type in place of an option that a command does not have. It parses nothing and runs nothing.

In this order: what the command itself calls the same thing, the knob of that name, the commands that have the option,
and last the nearest spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEANT: Mapping[str, Sequence[str]] = {
    "--slo": ("here limits are --goodput METRIC:MS",),
    "--policies": ("here it is --policy NAME",),
    "--policy": ("here it is --policies NAME,NAME",),
    "--batch": ("here it is --policy static --set max_batch_size=N", "here it is --set static.max_batch_size=N"),
    "compare --load": ("here both loads are run",),
    "--output": ("here it is --result-dir DIR",),
    "--out": ("here it is --result-dir DIR", "here it is --output FILE"),
    "--tp": ("give --tensor-parallel-size N",),
    "--qps": ("give --request-rate R",),
    "--rps": ("give --request-rate R",),
}
"""By an option, or a command and an option: what to type. The first holds whose option the command has, if it names
one."""
MOST_NAMED = 3
"""Commands that have an option."""


def hint(context: Any, option: str, near: Sequence[str]) -> str:
    """The next move for who gave a command an option that it does not have.

    Args:
        context: Of the command, as the parser has it.
        option: What was given, with its dashes.
        near: Options of the command that are spelled alike, the nearest first.
    """
    path = context.command_path if context else "batchsim"
    own = set(_options(context.command)) if context else set()
    meant = _meant(path, option, own)
    told = list(filter(None, (meant or _knob(option, own), _owned(context, option))))
    if near and (not told or (not meant and option.strip("-") in near[0])):
        told.append(f"did you mean '{near[0]}'?")
    return "; ".join(told) or f"see `{path} --help`"


def _meant(path: str, option: str, own: set[str]) -> str:
    """What the command calls it; empty where it has nothing of the kind."""
    entries = [*MEANT.get(f"{path.rpartition(' ')[2]} {option}", ()), *MEANT.get(option, ())]
    return next((each for each in entries if set(re.findall(r"--[a-z-]+", each)) <= own), "")


def _knob(option: str, own: set[str]) -> str:
    """How the knob of that name is set; empty where there is none, or the command takes none."""
    from simulator.policies import POLICIES
    knob = option.lstrip("-").replace("-", "_")
    known = "--set" in own and any(knob in kind.knobs() for kind in POLICIES.values())
    return f"it is a knob of a policy: --set {knob}=X" if known else ""


def _owned(context: Any, option: str) -> str:
    """Which other commands have it; empty where none has."""
    owners = [f"`{path}`" for path, command in _commands(context.find_root().command, "batchsim")
              if option in _options(command)] if context else []
    named, more = owners[:MOST_NAMED], len(owners) - MOST_NAMED
    words = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    return f"{words} {'has' if len(owners) == 1 else 'have'} it" if owners else ""


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, by what one types."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _options(command: Any) -> Iterator[str]:
    """Those of a command, all spellings."""
    for parameter in getattr(command, "whole", command).params:
        yield from parameter.opts
