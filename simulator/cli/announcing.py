"""A line on stderr before the code of a policy file is run that nobody typed: a file that was given names it.

It hears of every such file from `policies.loading`, by whichever way it is named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from simulator.cli.lines import note

NAMED, ASSIGNED = ("--policy", "--policies", "--from", "--to"), ("--set", "--vary")
"""Flags that give policies, and those that give them as policy=NAME."""
LOG = logging.getLogger("simulator.policies.loading")


@contextmanager
def announced(arguments: Sequence[str]) -> Iterator[None]:
    """Tell meanwhile of each policy file that is run and that these arguments do not give as a policy."""
    announcer, level = Announcer(typed(arguments)), LOG.level
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


def typed(arguments: Sequence[str]) -> set[Path]:
    """The policy files behind flags such as --policy a.py:A, --policies=static,a.py:A and --vary policy=a.py:A,b.py:B.

    What another flag says, such as a label, names no policy.
    """
    words = {word.strip() for value in _policies(arguments) for word in (value, *value.split(","))}
    return {Path(word.rpartition(":")[0]) for word in words if ".py:" in word}


def _policies(arguments: Sequence[str]) -> Iterator[str]:
    """The values of the flags that give policies."""
    for argument, following in pairwise((*arguments, "")):
        flag, equals, value = argument.partition("=")
        value = value if equals else following
        name, _, assigned = value.partition("=")
        if flag in NAMED:
            yield value
        elif flag in ASSIGNED and name.strip() == "policy":
            yield assigned
