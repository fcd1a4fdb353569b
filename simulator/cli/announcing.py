"""A line on stderr before the code of a policy file is run that nobody typed: a file that was given names it.

It hears of every such file from `policies.loading`, by whichever way it is named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulator.cli.lines import note

NAMED, ASSIGNED = {"--policy", "--policies", "--from", "--to"}, {"--set", "--vary"}
"""Flags that give policies, and those that give them as policy=NAME."""
LOG = logging.getLogger("simulator.policies.loading")


@contextmanager
def announced(context: Any) -> Iterator[None]:
    """Tell meanwhile of each policy file that is run and that this command, as it was parsed, is not given itself."""
    announcer, level = Announcer(typed(context)), LOG.level
    LOG.addHandler(announcer)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.setLevel(level)
        LOG.removeHandler(announcer)


class Announcer(logging.Handler):
    """Tells of files but for those typed."""

    def __init__(self, typed: set[Path]) -> None:
        super().__init__()
        self._typed = typed

    def emit(self, record: logging.LogRecord) -> None:
        """Say which file is run."""
        path = Path(record.getMessage())
        if path not in self._typed:
            note(f"{path} is run as Python code: a file that was given names it as the policy")


def typed(context: Any) -> set[Path]:
    """The policy files behind flags such as --policy a.py:A, --policies static,a.py:A and --vary policy=a.py:A,b.py:B.

    What another flag says, such as a label, names no policy, even if it looks like such a flag.
    """
    words = {word.strip() for value in _policies(context) for word in (value, *value.split(","))}
    return {Path(word.rpartition(":")[0]) for word in words if ".py:" in word}


def _policies(context: Any) -> Iterator[str]:
    """The values of the flags that give policies."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        values = [value] if isinstance(value, str) else value or []
        if NAMED & set(parameter.opts):
            yield from values
        elif ASSIGNED & set(parameter.opts):
            yield from (assigned for name, _, assigned in (each.partition("=") for each in values)
                        if name.strip() == "policy")
