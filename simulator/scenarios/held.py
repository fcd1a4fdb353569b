"""The files of a scenario, held: their digests from when they are first read, and a decline of what changes meanwhile.

A digest belongs to what was read: a file is digested before, and held against that afterwards; of a policy file, the
very bytes that are run have it. Once the file of a policy is held, the modules beside it are those that are held with
it: one that vanishes, or that comes later, is a change. It reads no file but for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from simulator.errors import file_changed
from simulator.policies import Policy
from simulator.policies.loading import code_run, content_run, digest_run
from simulator.policies.making import reference_of
from simulator.scenario import Scenario
from simulator.scenarios.named import altered, as_it_is, digest_now, digests, paths_of

TRACES = ("trace", "mix")
FILED = (*TRACES, "policy", "model", "cost_model")
"""Fields that may name files."""


def named_policy(scenario: Scenario) -> str:
    """The policy by its name, or as FILE.py:CLASS."""
    policy = scenario.policy
    return policy if isinstance(policy, str) else reference_of(policy) or policy.name


def unread(scenario: Scenario) -> tuple[str, ...]:
    """Fields whose files are to be read: all, but those of a trace that is at hand."""
    return FILED if scenario.read is None else tuple(name for name in FILED if name not in TRACES)


def files_of(scenario: Scenario, names: Sequence[str] = FILED, known: Mapping[str, str] | None = None, *,
             large: bool = True) -> dict[str, str]:
    """Digests by path of the files that a scenario names in these fields: those that it holds, else the `known` ones,
    else as they are now.

    Without `large`, what should first be looked at by its reader has none: see `named.digests`.
    """
    fields = {name: named_policy(scenario) if name == "policy" else getattr(scenario, name) for name in names}
    code = _code(scenario)
    found = digests(fields, {**(known or {}), **scenario.files, **code}, held=code, large=large)
    return {path: digest for each in found.values() for path, digest in each.items()}


def held(scenario: Scenario, known: Mapping[str, str] | None = None, *, large: bool = False) -> Scenario:
    """The scenario with the digests of its files: those that it has, those `known`, else as they are now."""
    return replace(scenario, files=files_of(scenario, known=known, large=large))


def together(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The files of both by path; raises FileChanged where they differ in one."""
    for path in one.keys() & other.keys():
        if one[path] != other[path]:
            raise file_changed(path)
    return {**one, **other}


@contextmanager
def unchanged(scenario: Scenario, *names: str) -> Iterator[None]:
    """Read meanwhile the files of these fields, of all if none is named.

    Raises FileChanged where one of them is not, before or afterwards, what the scenario holds, or, where that is too
    large to be digested before, is not the same by its times and sizes. What is at hand already is not looked at.
    """
    fields = {name: getattr(scenario, name) for name in names or unread(scenario)}
    _check(scenario, fields)
    before = {path: as_it_is(path) for path in chain(*paths_of(fields, scenario.files).values())
              if path not in scenario.files}
    try:
        yield
    except Exception:
        _check(scenario, fields)    # which explains whatever went wrong
        raise
    _check(scenario, fields)
    for path, there in before.items():
        if there and there != as_it_is(path):
            raise file_changed(path)


def _check(scenario: Scenario, fields: Mapping[str, Any]) -> None:
    _, *modules = paths_of({"policy": fields.get("policy")}, scenario.files)["policy"] or [""]
    for path in modules:
        if digest_run(path) not in (None, scenario.files.get(path)):
            raise file_changed(path, "run")
    for _, path, how in altered(fields, scenario.files):
        raise file_changed(path, "run" if how == "changed" and path in modules and digest_run(path) else how)


def _code(scenario: Scenario) -> Mapping[str, str]:
    """The digests of the policy's file and modules: as it holds them, of an object as they were run, else as this
    process ran what is there now; none where that is all new.
    """
    policy, file = scenario.policy, named_policy(scenario).rpartition(":")[0]
    if not file.endswith(".py"):
        return {}
    if isinstance(policy, Policy):
        return {file: content_run(type(policy))} | code_run(file, content_run(type(policy)))
    return scenario.files if file in scenario.files else code_run(file, digest_now(file) or "")
