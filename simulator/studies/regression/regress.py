"""regress: run what a baseline says again, or take a result in its place, and compare. It writes nothing but baselines.

A policy file, a model or a profile that has changed since is what a check is for; another trace is another question.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator.documents import readable
from simulator.errors import InputError
from simulator.policies import Policy
from simulator.policies.making import make_policies, reference_of
from simulator.remarks import unserved
from simulator.saved import MANIFEST
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios import ScenarioFile, read_scenario
from simulator.scenarios.held import held
from simulator.scenarios.recording import FILES
from simulator.simulation import Progress, run
from simulator.studies.campaign.answers import HOPELESS
from simulator.studies.regression.baseline import Baseline, entry, new_baseline, read_baseline
from simulator.studies.regression.causes import differences, stages
from simulator.studies.regression.comparing import compare
from simulator.studies.regression.found import Compared, Regression
from simulator.studies.regression.recorded import merged
from simulator.studies.regression.side import Side, simulated
from simulator.studies.regression.tolerances import UNKNOWN, over, stated, tolerances

Source = Scenario | ScenarioFile | str | os.PathLike[str]
"""Of what is to run: a scenario, or the file of one."""
Paths = Sequence[str | os.PathLike[str]]
Told = Callable[[str, int, int], None]
"""Called with (the baseline that is compared, baselines done, baselines in all)."""
SOURCES = ("trace", "mix")
"""Fields of a scenario that may name files."""


def save(path: str | os.PathLike[str], scenario: Source | None = None, *, results: Paths = (),
         tolerance: Mapping[str, str] | None = None, progress: Progress | None = None) -> Baseline:
    """Run a scenario, or read results in its place, and write what it comes to as a baseline. It replaces any file.

    Args:
        path: The file.
        scenario: What to run.
        results: JSON of `vllm bench serve` or `batchsim run`; several are repetitions.
        tolerance: By metric, name of the JSON or "all": "exact", "5%", or a number in the metric's own unit.
        progress: See `simulator.simulation.run`.

    Raises:
        InputError: Nobody is served, or the scenario could not be run again from a file.
    """
    stated(tolerance or {})
    asked = Scenario() if scenario is None else scenario
    side = _recorded(results) if results else _first(_scenario(asked), progress)
    _refuse_empty(side, "nobody was served")
    found = new_baseline(path, side, tolerance or {})
    found.write()
    return found


def regress(baseline: str | os.PathLike[str], scenario: Source | None = None, *, results: Paths = (),
            metrics: Sequence[str] = (), tolerance: Mapping[str, str] | None = None, told: Told | None = None,
            **changes: Any) -> Regression:
    """Compare the present with a baseline, or with each baseline of a folder.

    Args:
        baseline: What `save` wrote, or a result in its place.
        scenario: What to run; the baseline's own if not given.
        results: To take in place of a run; a baseline is one too.
        metrics: Names of the JSON, or of metrics, to compare; all that the baseline measured if not given.
        tolerance: Over what the baseline states: see `save`.
        told: Hears how far it has got.
        changes: Fields of the scenario that are other than there, such as policy.

    Raises:
        InputError: The baseline is none, or cannot be run; of a folder, every one of them, else the answer says which.
            Where there is none, or a metric is not there any more, nothing is compared, and the answer says so.
    """
    if results and (scenario is not None or changes):
        raise InputError("results take the place of a run: give them, or a scenario and what is other in it")
    stated(tolerance or {})
    paths, reason = _baselines(Path(baseline))
    found: list[Compared] = []
    errors: list[Exception] = []
    for number, path in enumerate(paths):
        if told:
            told(readable(path.stem), number, len(paths))
        try:
            known = read_baseline(path) if path.exists() else None
            found.append(Compared(readable(path.stem), reason=reason) if known is None else
                         _compared(known, scenario, results, metrics, tolerance or {}, changes))
        except HOPELESS as error:
            errors.append(error)
            found.append(Compared(readable(path.stem), reason=" ".join(str(error).split()), wrong=True))
    if errors and len(errors) == len(paths):
        raise errors[0]
    return Regression(tuple(found), "" if found else reason, _aside(Path(baseline)))


def accept(found: Regression, reason: str) -> list[Baseline]:
    """Make what runs now the baselines, and write those that change, with the reason in their history.

    Raises InputError, before anything is written, for an empty reason, and where there is no baseline to replace.
    """
    entry(reason)
    if not found.compared:
        raise InputError(f"{found.reason}, so there is nothing to accept")
    accepted = [_accepted(each, reason) for each in found.compared]
    changed = [new for new, each in zip(accepted, found.compared, strict=True) if each.baseline
               and new.side != each.baseline.side]
    for new in changed:
        new.write()
    return changed


def _first(scenario: Scenario, progress: Progress | None) -> Side:
    """What a run comes to that serves somebody. Raises InputError with what would get them served."""
    result = run(scenario, progress=progress)
    side = simulated(result)
    _refuse_empty(side, unserved(result.summary(metrics=())))
    return side


def _refuse_empty(side: Side, why: str | None) -> None:
    if side.empty:
        raise InputError(f"{why}; a baseline without an answer would pass whatever serves nobody")


def _accepted(found: Compared, reason: str) -> Baseline:
    known, current = found.baseline, found.current
    if known is None or current is None:
        raise InputError(f"{found.reason or found.name}, so there is nothing to accept")
    if not known.kept:
        raise InputError(f"{known.path}: is a plain result, which keeps no history: save it as a baseline first")
    if known.side.scenario is not None and current.scenario is None:
        raise InputError(f"{known.path}: can be run again, and a measurement cannot: save it as a baseline of its own")
    _refuse_empty(current, f"{known.path}: nobody is served now")
    changes = {change.name: (change.before, change.after) for change in found.changes if change.verdict != "same"}
    return known.accepted(current, reason, changes)


def _baselines(path: Path) -> tuple[list[Path], str]:
    """The files of baselines, and why there would be none."""
    where = readable(path)
    if not path.is_dir():
        return [path], f"{where} does not exist: make it with `batchsim baseline save`"
    files = sorted(each for each in path.glob("*.json") if each.name != MANIFEST)
    return files, f"{where}/ holds no baseline (*.json): make some with `batchsim baseline save`"


def _aside(path: Path) -> tuple[str, ...]:
    """The folders in a folder of baselines that hold what may be some."""
    inside = sorted(each for each in path.iterdir() if each.is_dir()) if path.is_dir() else []
    return tuple(f"{readable(each)}/" for each in inside if any(each.glob("*.json")))


def _new(before: Side, after: Side) -> tuple[str, ...]:
    """What is measured now and was not, between two of a kind."""
    return tuple(name for name, value in after.metrics.items() if value is not None
                 and before.metrics.get(name) is None and before.kind == after.kind)


def _compared(known: Baseline, scenario: Source | None, results: Paths, metrics: Sequence[str],
              texts: Mapping[str, str], changes: Mapping[str, Any]) -> Compared:
    asked = None if known.side.scenario is None else _own(known)
    try:
        current = None if results else held(_current(known, asked, scenario, changes))
        side = _recorded(results) if current is None else simulated(run(current))
    except HOPELESS as error:
        if asked is None or scenario is not None or not _gone(known):
            raise
        raise InputError(f"{error} (the files of {known.path} are looked for from the folder that one stands in, so go "
                         "to the one in which it was saved)") from None
    allowed = tolerances(known.side, side, over(known.tolerances, texts))
    changed = compare(known.side, side, allowed, metrics, rerun=current is not None)
    found = Compared(known.name, changed, "", known, side, allowed, tuple(differences(known.side, side)),
                     new=() if metrics else _new(known.side, side))
    if known.side.empty and side.empty:
        return replace(found, changes=(), reason="nobody was served, neither then nor now: `batchsim run` of the same "
                                                 "says why")
    if not found.changes:
        return replace(found, reason="the baseline and the current result have no metric in common")
    if not any(change.tolerance.gates for change in found.changes):
        return replace(found, changes=tuple(replace(change, verdict="not compared", reason=change.reason or UNKNOWN)
                                            for change in found.changes))
    if not found.failed or asked is None or current is None:
        return found
    return replace(found, stages=tuple(stages(known.side, side, held(asked.scenario(), current.files), current,
                                              lambda each: simulated(run(each)))))


def _gone(known: Baseline) -> bool:
    """Whether a file that its scenario names is not there."""
    return any(not Path(path).exists() for path in (known.side.scenario or {}).get(FILES, {}))


def _own(known: Baseline) -> ScenarioFile:
    """The scenario of a baseline, with all files that it names as they are now."""
    return replace(read_scenario(known.path), files={})


def _current(known: Baseline, asked: ScenarioFile | None, scenario: Source | None,
             changes: Mapping[str, Any]) -> Scenario:
    """What to run now."""
    if scenario is not None:
        return _scenario(scenario, **changes)
    if asked is None:
        raise InputError(f"{known.path}: has no scenario to run again: give the current measurement with --result, or "
                         "a scenario to hold against it")
    read_scenario(known.path).check(*(name for name in SOURCES if name not in changes))
    return _scenario(asked, **changes)


def _scenario(source: Source, **changes: Any) -> Scenario:
    """The scenario with changes; knobs add to its own. Its policy goes by name if it has one, so that knobs can be told
    apart.
    """
    if isinstance(source, Scenario):
        found = source.but(**changes)
    else:
        knobs = changes.pop("knobs", {})
        fields = (source if isinstance(source, ScenarioFile) else read_scenario(source)).with_changes(changes)
        known = {**fields.pop("knobs", {}), **knobs}
        found = scenario_of(policy=make_policies([fields.pop("policy", Scenario.policy)], known)[0], **fields)
    policy = found.policy
    name = reference_of(policy) if isinstance(policy, Policy) else None
    return found if name is None or not isinstance(policy, Policy) else found.but(policy=name, knobs=policy.settings())


def _recorded(paths: Paths) -> Side:
    return merged([read_baseline(path).side for path in paths])
