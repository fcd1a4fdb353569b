"""Variants: from names and values to scenarios that differ in them. It runs nothing.

A name is a field of Scenario, an entry of one that is a mapping (`goodput.ttft`), a knob of the policy, or POLICY.KNOB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any

from simulator.errors import InputError, choose
from simulator.memory.base import UNLIMITED
from simulator.policies.base import Policy
from simulator.policies.making import make_policy, policy_class
from simulator.scenario import FIELDS as ASKED
from simulator.scenario import Scenario
from simulator.scenario_checks import MAPPINGS

Values = Mapping[str, Any]
"""A value by name: what one variant differs in."""
FIELDS = {name: Scenario.__dataclass_fields__[name] for name in ASKED}


@dataclass(frozen=True)
class Variant:
    """One point of a sweep.

    Attributes:
        values: That apply to it, in the order in which they were given.
        scenario: That they lead to.
        number: Which of several runs of the point it is.
    """

    values: Values
    scenario: Scenario
    number: int = 0

    @property
    def key(self) -> str:
        """The point, and which of its runs."""
        return f"{self.point}, run {self.number}" if self.number else self.point

    @property
    def point(self) -> str:
        """The values in one line, as flags spell them."""
        return ",".join(f"{name}={shown(value)}" for name, value in self.values.items()) or "as given"


def grid(vary: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last name running fastest."""
    if not isinstance(vary, Mapping):
        raise InputError(f'vary maps names to values, such as {{"max_num_seqs": [32, 64]}}, not {vary!r}')
    for name, values in vary.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Collection):
            raise InputError(f"{name} is varied over a list of values, such as [{values!r}], not {values!r}")
        if not len(values):
            raise InputError(f"{name} is varied over no value: give some, such as {name}=1,2,4")
    return [dict(zip(vary, combination, strict=True)) for combination in product(*vary.values())]


def variants(base: Scenario, settings: Values, combinations: Iterable[Values]) -> dict[str, Variant]:
    """A variant for each combination, by its key; those that come to the same are one.

    Args:
        base: What they have in common; its policy is given by name.
        settings: Knobs by "knob" or "policy.knob", for all of them.
        combinations: What each one differs in.

    Raises:
        InputError: A name that is neither a field nor a knob of a policy in play, or a value that cannot be.
    """
    asked = [dict(each) for each in combinations]
    policies = list(dict.fromkeys(_policy(base, each) for each in asked))
    _check_names(policies, [*settings, *(name for each in asked for name in each if not _is_field(name))])
    found: dict[str, Variant] = {}
    for values in asked:
        variant = _variant(base, settings, values)
        found.setdefault(variant.key, variant)
    return found


def _variant(base: Scenario, settings: Values, values: Values) -> Variant:
    policy = _policy(base, values)
    applies = {name: value for name, value in values.items() if _is_field(name) or _knob(policy, name, base.files)}
    fields: dict[str, Any] = {}
    for name, value in applies.items():
        field, _, entry = name.partition(".")
        if name in FIELDS:
            fields[name] = as_field(name, value)
        elif field in MAPPINGS:
            fields[field] = {**fields.get(field, getattr(base, field)), entry: value}
    knobs = {knob: value for given in (settings, applies) for name, value in given.items()
             if (knob := None if _is_field(name) else _knob(policy, name, base.files))}
    scenario = base.but(**fields, knobs=knobs)
    make_policy(policy, knobs, base.files)    # what is wrong with a knob is said before anything runs
    return Variant(applies, scenario)


def _policy(base: Scenario, values: Values) -> str:
    policy = values.get("policy", base.policy)
    if not isinstance(policy, str):
        raise InputError(f"a sweep takes the policy by its name, and its knobs beside it, not {policy!r}")
    return policy


def _is_field(name: str) -> bool:
    """Whether it sets a field, or an entry of one; knobs have their own way."""
    field, dot, _ = name.partition(".")
    return field != "knobs" and (field in MAPPINGS if dot else field in FIELDS)


def _knob(policy: str, name: str, files: Mapping[str, str]) -> str | None:
    """The knob of this policy that a name means, if any."""
    owner, _, knob = name.rpartition(".")
    return knob if owner in ("", policy) and knob in policy_class(policy, files).knobs() else None


def knob_named(scenario: Scenario, name: str) -> str | None:
    """The knob of the scenario's policy that a varied name means, if any."""
    return None if _is_field(name) else _knob(str(scenario.policy), name, scenario.files)


def _check_names(policies: Sequence[str], names: Iterable[str]) -> None:
    kinds: dict[str, type[Policy]] = {policy: policy_class(policy) for policy in policies}
    for name in dict.fromkeys(names):
        owner, _, knob = name.rpartition(".")
        if owner:
            choose("policy or mapping before a dot", owner, [*kinds, *MAPPINGS])
        owned = [kinds[owner]] if owner in kinds else list(kinds.values())
        knobs = [each for kind in owned for each in kind.knobs()]
        choose(f"field or knob of {', '.join([owner] if owner else kinds)}", knob,
               dict.fromkeys([*knobs, *(() if owner else FIELDS)]), "batchsim init -o scenario.yaml")


def as_field(name: str, value: Any) -> Any:
    """A value as the field takes it: 2 is 2.0 where any number may stand, inf lifts a bound that is a whole number."""
    kind = str(FIELDS[name].type)
    if isinstance(value, int) and not isinstance(value, bool) and "float" in kind:
        return float(value)
    if value == inf and "float" not in kind and "None" in kind:
        return UNLIMITED if name == "max_model_len" else None
    return None if value == "none" and "None" in kind else value


def shown(value: Any) -> str:
    """A value as a flag spells it, a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{shown(part)}" for key, part in value.items()) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
