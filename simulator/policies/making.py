"""Making policies from names and knobs, as a command line or a scenario gives them. It knows no engine's rule."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from simulator.errors import InputError, choose
from simulator.frozen import of_python
from simulator.memory.base import UNLIMITED
from simulator.policies import POLICIES
from simulator.policies.base import Policy
from simulator.policies.loading import PREFIX, load_policy


def policy_class(name: str, files: Mapping[str, str] | None = None) -> type[Policy]:
    """The bundled policy of that name, or the class that FILE.py:CLASS names.

    `files` are digests by path; a file among them that has another one is declined with FileChanged.
    """
    if ".py" in name:
        return load_policy(name, (files or {}).get(name.rpartition(":")[0]))
    return POLICIES[choose("policy", name, POLICIES)]


def make_policy(policy: Policy | str, knobs: Mapping[str, Any] | None = None,
                files: Mapping[str, str] | None = None) -> Policy:
    """The policy itself, or the one of that name with these knobs; inf lifts a bound. `files`: see `policy_class`."""
    if isinstance(policy, Policy):
        if knobs:
            raise InputError("knobs go with a policy given by name; set them on the policy object instead")
        return policy
    kind = policy_class(policy, files)
    return kind(**{choose(f"knob of {policy}", knob, kind.knobs()): _bound(kind, knob, of_python(value))
                   for knob, value in (knobs or {}).items()})


def _bound(kind: type[Policy], knob: str, value: Any) -> Any:
    """A whole number stands for inf, except where the knob is a fraction or a time."""
    whole = not isinstance(kind.knobs()[knob], float)
    return UNLIMITED if value == inf and whole else value


def make_policies(policies: Sequence[Policy | str], settings: Mapping[str, Any] | None = None) -> list[Policy]:
    """Several policies; `settings` maps "knob" (of each that has it) or "policy.knob" to a value."""
    named = {policy: policy_class(policy) for policy in policies if isinstance(policy, str)}
    knobs: dict[str, dict[str, Any]] = {name: {} for name in named}
    for key, value in (settings or {}).items():
        owner, dot, knob = key.rpartition(".")
        if dot and not owner:
            raise InputError(f"setting {key!r} names no policy before its dot: write {knob} or POLICY.{knob}")
        for name in _owners(owner, knob, named):
            knobs[name][knob] = value
    return [make_policy(policy, knobs[policy]) if isinstance(policy, str) else policy for policy in policies]


def _owners(owner: str, knob: str, named: Mapping[str, type[Policy]]) -> list[str]:
    """Which of the named policies a setting is meant for."""
    if owner:
        if owner in POLICIES and owner not in named:
            raise InputError(f"setting {owner}.{knob} is for {owner}, and what runs here is {', '.join(named)}: choose "
                             f"{owner} as policy, or leave that setting out")
        return [choose("policy in a setting", owner, named)]
    owners = [name for name, kind in named.items() if knob in kind.knobs()]
    if not owners:
        choose(f"knob of {', '.join(named) or 'these policies'}", knob,
               dict.fromkeys(known for kind in named.values() for known in kind.knobs()))
    return owners


def reference_of(policy: Policy) -> str | None:
    """What names this policy's class: a bundled name or FILE.py:CLASS; None for one of the caller's own program."""
    kind = type(policy)
    if POLICIES.get(policy.name) is kind:
        return policy.name
    module = sys.modules.get(kind.__module__)
    if module is None or not kind.__module__.startswith(PREFIX):
        return None
    return f"{module.__file__}:{kind.__name__}"
