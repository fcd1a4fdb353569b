"""campaign: measure many points somewhere, lose none that was measured, and let none that fails take others along.

Points are sent off together. Those whose worker died go again in ever smaller groups, until it is known which one is to
blame; only that one uses up tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from simulator import checks
from simulator.errors import FileChanged, InputError
from simulator.scenario import Scenario
from simulator.studies.campaign.answers import Failure, Fault, Found, answer
from simulator.studies.campaign.backends import Backend
from simulator.studies.campaign.cargo import distinct, unloaded, with_traces
from simulator.studies.campaign.session import Session
from simulator.studies.campaign.store import Store
from simulator.version import __version__

T = TypeVar("T")
Told = Callable[[int, int], None]
"""Called with (points done, points in all)."""
DIED = "the process that ran it died: killed, or out of memory"
RETRIES = 2


def campaign(points: Mapping[str, Scenario], measure: Callable[[Scenario], T], *, backend: Backend | None = None,
             store: Store | None = None, retries: int = RETRIES,
             told: Told | None = None) -> dict[str, Found[T] | Failure]:
    """What became of each point, by the same keys and in the same order, whichever backend ran them.

    Args:
        points: Scenarios by keys of one's own.
        measure: A function that other processes can import; with a store, it returns what JSON can say.
        backend: Where the points run; None: here, one after the other.
        store: Keeps each value on disk before it counts, and knows those of earlier calls.
        retries: Further tries of a point that fails, or whose process dies. One that cannot be run as it is asked
            for, such as a model that its GPU does not hold, gets none.
        told: Hears how far it has got, at first of what was there already.

    Raises:
        InputError: The cluster cannot be reached, or the store not be written; what was measured is kept.
        FileChanged: A file that the points name changed meanwhile, or is another one where they run.
    """
    retries = checks.whole("retries", retries, 0)
    return _Campaign(with_traces(points), measure, backend or Backend(), store, retries, told).answer()


class _Campaign:
    """One call of `campaign`, and how far it has got."""

    def __init__(self, points: Mapping[str, Scenario], measure: Callable[[Scenario], Any], backend: Backend,
                 store: Store | None, retries: int, told: Told | None) -> None:
        self._points, self._measure, self._backend, self._store = points, measure, backend, store
        self._retries, self._told = retries, told or (lambda done, of: None)
        self._tries = dict.fromkeys(points, 0)
        self._done: dict[str, Found[Any] | Failure] = {}

    def answer(self) -> dict[str, Found[Any] | Failure]:
        if self._store and (known := self._store.known(self._points)):
            self._done |= known
            self._told(len(known), len(self._points))
        if missing := [key for key in self._points if key not in self._done]:
            traces = distinct(self._points[key] for key in missing)
            with self._backend.open(traces, len(missing)) as session:
                cargo = {id(trace): each for trace, each in zip(traces, session.cargo, strict=True)}
                self._run(session, cargo, missing)
        return {key: self._done[key] for key in self._points}

    def _run(self, session: Session, cargo: Mapping[int, Any], missing: list[str]) -> None:
        groups = [missing]
        while groups:
            groups += filter(None, self._round(session, cargo, groups.pop()))

    def _round(self, session: Session, cargo: Mapping[int, Any], keys: list[str]) -> list[list[str]]:
        """Send these points off together; the groups in which some are to go again."""
        answered: dict[str, bool] = {}    # of those sent
        again = []
        try:
            for back in session.run(self._calls(cargo, keys, answered)):
                if back is not None:
                    answered[back[0]] = True
                    again += self._heard(*back)
        except session.deaths:
            if not answered:
                raise InputError("the workers die before they begin: see what they wrote themselves") from None
        unsent = [key for key in keys if key not in answered]
        return [unsent, again, *self._smaller([key for key, known in answered.items() if not known])]

    def _calls(self, cargo: Mapping[int, Any], keys: Sequence[str], answered: dict[str, bool]) -> Iterator[Any]:
        from joblib import delayed
        for key in keys:
            answered[key] = False
            scenario = self._points[key]
            yield delayed(answer)(cargo[id(scenario.read)], key, unloaded(scenario), self._measure, __version__)

    def _heard(self, key: str, value: Any) -> list[str]:
        """Keep a value; of a point that failed, the key if it is to go again."""
        if isinstance(value, Fault):
            if value.changed:
                raise self._ended(value.reason)
            return self._failed(key, value.reason, hopeless=value.hopeless)
        scenario = self._points[key]
        self._finish(key, Found(scenario, self._store.keep(key, scenario, value) if self._store else value))
        return []

    def _ended(self, reason: str) -> FileChanged:
        """No further point would go together with those before."""
        kept = "; what was measured before is kept, and --resume goes on with it once the file is as it was"
        return FileChanged(reason + kept * bool(self._store))

    def _smaller(self, lost: list[str]) -> list[list[str]]:
        """The groups in which those go again whose workers died: one alone is to blame, of several any may be."""
        if len(lost) <= 1:
            return [self._failed(key, DIED) for key in lost]
        return [lost[:len(lost) // 2], lost[len(lost) // 2:]]

    def _failed(self, key: str, reason: str, *, hopeless: bool = False) -> list[str]:
        self._tries[key] += 1
        if not hopeless and self._tries[key] <= self._retries:
            return [key]
        self._finish(key, Failure(self._points[key], reason, self._tries[key], hopeless))
        return []

    def _finish(self, key: str, outcome: Found[Any] | Failure) -> None:
        self._done[key] = outcome
        self._told(len(self._done), len(self._points))
