"""Causes: what differs between a baseline and the current run, and how much of a change each is to blame for.

First the baseline's own scenario is run by today's code: what that moves is code, policy file or cost model. Then one
setting after the other goes over to the current scenario. The parts add up to the change; they depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simulator.policies.making import make_policy
from simulator.scenario import FIELDS, HELD_BY, READ_FROM, Scenario
from simulator.scenarios import record
from simulator.scenarios.recording import FILES, IN_MEMORY, plain
from simulator.studies.campaign.answers import HOPELESS
from simulator.studies.regression.side import Side

CODE = "code and files"
APART = 4
"""Most settings that are told apart: each takes a run; further ones go over together."""
ORIGINS = {"simulator_version": "batchsim", "policy_version": "policy version", "cost_model": "cost model",
           "cost_digest": "step times", "trace_digest": "trace", "backend": "backend", "model_id": "model"}
"""What makes a side, in words."""
BY_DEFAULT = ("max_tokens", "max_model_len", "request_overhead", "kv_capacity_tokens", "queue_limit")
"""Fields of a scenario that something else decides where it does not; left alone, knobs are such as well."""
TRAFFIC = READ_FROM | {"num_prompts", "shape", "rate_scale", "cap_gaps", "request_rate", "burstiness", "load", "turns",
                       "max_concurrency"}
"""Fields that say what is asked of an engine."""
FOLLOWING = {"trace_digest": TRAFFIC | HELD_BY, "cost_model": {"cost_model"}, "cost_digest": {"cost_model"}}
"""What of a side is other where one of these settings is, and need not be told beside it."""
Measure = Callable[[Scenario], Side]


@dataclass(frozen=True)
class Difference:
    """One thing in which two runs differ.

    Attributes:
        what: In words.
        before, after: Its values, in words; empty where only the fact is known.
    """

    what: str
    before: str = ""
    after: str = ""

    @property
    def asks(self) -> bool:
        """Whether other traffic was asked for."""
        return self.what in TRAFFIC

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}" if self.before or self.after else f"{self.what} changed"


@dataclass(frozen=True)
class Stage:
    """A run on the way from the baseline to the current run.

    Attributes:
        what: What changed since the stage before, in words.
        metrics: What it came to.
    """

    what: str
    metrics: Mapping[str, float | None]


def differences(before: Side, after: Side) -> list[Difference]:
    """What made the sides other than each other: versions and files first, then settings."""
    settings = ([Difference(*told[:3]) for told in _settings(before.scenario, after.scenario, before.effective,
                                                             after.effective)]
                if before.scenario and after.scenario else [])
    changed = {each.what for each in settings}
    found = [Difference(words) if name.endswith("digest") else Difference(words, str(was), str(now))
             for name, words in ORIGINS.items() if not changed & FOLLOWING.get(name, set())
             and None not in (was := before.origin.get(name), now := after.origin.get(name)) and was != now]
    return [*found, *_files(before.scenario or {}, after.scenario or {}), *settings]


def stages(before: Side, after: Side, asked: Scenario, current: Scenario, measure: Measure) -> list[Stage]:
    """From what the baseline came to, to what the current run does.

    `asked` is the scenario of the baseline, `current` the current one. Empty where they are the same, so that only code
    and files can be to blame, and where a run in between cannot be: some settings go only together.
    """
    try:
        return _stages(before, after, asked, current, measure)
    except HOPELESS:
        return []


def _stages(before: Side, after: Side, asked: Scenario, current: Scenario, measure: Measure) -> list[Stage]:
    settings = list(_settings(record(asked), record(current), before.effective, after.effective))
    if not settings:
        return []
    told = [Stage("", before.metrics), Stage(CODE, measure(asked).metrics)]
    *apart, last = settings if len(settings) <= APART else [*settings[:APART - 1], _together(settings[APART - 1:])]
    for what, was, now, change in apart:
        asked = change(asked, current)
        told.append(Stage(str(Difference(what, was, now)), measure(asked).metrics))
    return [*told, Stage(str(Difference(*last[:3])), after.metrics)]


Setting = tuple[str, str, str, Callable[[Scenario, Scenario], Scenario]]
"""What it is, its two values in words, and how a scenario takes it over from another one."""


def _settings(before: Mapping[str, Any], after: Mapping[str, Any], was_so: Mapping[str, Any],
              is_so: Mapping[str, Any]) -> Iterator[Setting]:
    """The fields in which two records differ, the knobs of one policy one by one.

    `was_so` and `is_so` are the values that were in force where a record says none.
    """
    own = "policy" in after.get(IN_MEMORY, ())
    same_policy = before.get("policy") == after.get("policy") and not own
    for name in FIELDS:
        was, now = (side.get(name, plain(getattr(Scenario, name, None))) for side in (before, after))
        if name == "policy" and not same_policy:
            yield name, _word(was), f"{_word(now)}{' (an object in memory)' * own}", _taking("policy", "knobs")
        elif name == "knobs":
            yield from _knobs(was or {}, now or {}, was_so, is_so) if same_policy else ()
        elif was != now:
            words = _in_force if name in BY_DEFAULT else _as_said
            yield name, words(name, was, was_so), words(name, now, is_so), _taking(name)


def _knobs(was: Mapping[str, Any], now: Mapping[str, Any], was_so: Mapping[str, Any],
           is_so: Mapping[str, Any]) -> Iterator[Setting]:
    for knob in {**was, **now}:
        if was.get(knob) != now.get(knob):
            yield (knob, _in_force(knob, was.get(knob), was_so), _in_force(knob, now.get(knob), is_so),
                   _taking_knob(knob))


def _taking(*fields: str) -> Callable[[Scenario, Scenario], Scenario]:
    """Takes over these fields."""
    return lambda into, of: into.but(**{name: getattr(of, name) for name in fields})


def _taking_knob(knob: str) -> Callable[[Scenario, Scenario], Scenario]:
    """Takes over one knob; both scenarios name their policy."""
    return lambda into, of: into.but(knobs={**make_policy(into.policy, into.knobs, into.files).settings(),
                                            knob: getattr(make_policy(of.policy, of.knobs, of.files), knob)})


def _together(settings: list[Setting]) -> Setting:
    names = [what for what, *_ in settings]
    return f"{', '.join(names[:-1])} and {names[-1]}", "", "", _taking()


def _files(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """Files that both name, and that are not what they were; and modules that only one of them imports by its policy,
    which both have.
    """
    was, now = before.get(FILES, {}), after.get(FILES, {})
    for path in {**was, **now}:
        if path in was and path in now:
            yield from [Difference(path)] if was[path] != now[path] else ()
        elif path.endswith(".py") and before.get("policy") == after.get("policy"):
            yield Difference(path, *(("imported", "not there") if path in was else ("not there", "imported")))


def _in_force(name: str, value: Any, so: Mapping[str, Any]) -> str:
    """A value, or what stands in for it where nothing is said."""
    if value is not None:
        return _word(value)
    return f"{_word(so[name])} by default" if so.get(name) is not None else "by default"


def _as_said(_: str, value: Any, __: Mapping[str, Any]) -> str:
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{_word(each)}" for key, each in value.items()) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)
