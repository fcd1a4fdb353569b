"""What can go wrong, by whose fault. Knows nothing of commands and exit codes."""

from __future__ import annotations


class InputError(ValueError):
    """The caller asked for something that cannot be: a name, a value, a combination."""


class PolicyError(RuntimeError):
    """A policy broke its contract: it returned what cannot be run."""


class StalledError(RuntimeError):
    """The simulation ran out of events while requests were still waiting or running."""
