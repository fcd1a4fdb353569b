"""Crew: has a plan's runs made wherever a campaign can make them, and counts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from simulator.errors import InputError
from simulator.scenario import Scenario
from simulator.studies.campaign import Backend, Failure, Found, campaign
from simulator.studies.capacity.objectives import Objective
from simulator.studies.capacity.sample import Sample, sample
from simulator.studies.capacity.traffic import Probe

Told = Callable[[str, int, int], None]
"""Called with (what for, runs done, runs asked for so far)."""


class Crew:
    """Makes runs.

    Args:
        backend: Where.
        told: Hears how far it has got.
    """

    def __init__(self, backend: Backend, told: Told | None = None) -> None:
        self._backend, self._told = backend, told or (lambda what, done, of: None)
        self.runs = 0

    def measure(self, scenarios: Mapping[Probe, Scenario], objectives: Sequence[Objective],
                why: str) -> dict[Probe, Sample]:
        """The samples of all scenarios by the same keys. Raises InputError for one that cannot be run."""
        before, keys = self.runs, {str(at): probe for at, probe in enumerate(scenarios)}
        self.runs += len(keys)
        found = campaign({key: scenarios[probe] for key, probe in keys.items()},
                         partial(sample, objectives=tuple(objectives)), backend=self._backend,
                         told=lambda done, of: self._told(why, before + done, before + of))
        return {probe: _value(found[key]) for key, probe in keys.items()}


def _value(outcome: Found[Sample] | Failure) -> Sample:
    if isinstance(outcome, Failure):
        raise InputError(outcome.reason)
    return outcome.value
