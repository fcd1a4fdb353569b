"""A line on stderr before the code of a policy file is run that nobody typed: a file that was given names it.

It hears of every such file from `policies.loading`, by whichever way it is named.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from simulator.cli.lines import note

LOG = logging.getLogger("simulator.policies.loading")


@contextmanager
def announced(arguments: Sequence[str]) -> Iterator[None]:
    """Tell meanwhile of each policy file that is run and is not among these arguments."""
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
    """The policy files in arguments such as a.py:A, static,a.py:A and policy=a.py:A,b.py:B."""
    words = {word for argument in arguments for part in argument.split(",")
             for word in (argument, argument.partition("=")[2], part, part.partition("=")[2])}
    return {Path(word.rpartition(":")[0]) for word in words if ".py:" in word}
