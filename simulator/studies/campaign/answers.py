"""Answers: what became of a point, and the call that finds it out, wherever it runs. It knows no engine and no file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cost_models import CostModelError
from simulator.errors import FileChanged, InputError, PolicyError, StalledError
from simulator.policies.loading import fault_in_policy_file
from simulator.scenario import Scenario
from simulator.studies.campaign.cargo import loaded
from simulator.version import __version__
from traces import Trace, TraceError

T = TypeVar("T")
HOPELESS = (InputError, TraceError, CostModelError, StalledError, PolicyError)
"""What is wrong with the scenario itself: another try would end the same."""


@dataclass(frozen=True)
class Found(Generic[T]):
    """A point that was measured.

    Attributes:
        scenario: What was asked.
        value: What the measure made of it.
    """

    scenario: Scenario
    value: T


@dataclass(frozen=True)
class Failure:
    """A point that could not be measured.

    Attributes:
        scenario: What was asked; it runs alone in `simulator.run`.
        reason: What went wrong, in one line.
        tries: How often it was tried.
        hopeless: It cannot be run as it is asked for; otherwise something went wrong on the way.
    """

    scenario: Scenario
    reason: str
    tries: int
    hopeless: bool = False


@dataclass(frozen=True)
class Fault:
    """Why one try failed, whether another one would fail alike, and whether the reason is that a file has changed."""

    reason: str
    hopeless: bool
    changed: bool = False


def answer(trace: Trace, key: str, scenario: Scenario, measure: Callable[[Scenario], Any],
           version: str) -> tuple[str, Any]:
    """The key, and the value or a Fault. The trace comes by itself, for it is shipped once and the scenario often."""
    if version != __version__:
        return key, Fault(f"a worker has batchsim {__version__}, this is {version}: install the same on both", True)
    try:
        return key, measure(loaded(scenario, trace))
    except HOPELESS as error:
        return key, Fault(" ".join(str(error).split()), True, isinstance(error, FileChanged))
    except Exception as error:
        told = fault_in_policy_file(error) or f"{type(error).__name__}: {error}"
        return key, Fault(" ".join(told.split()), False)
