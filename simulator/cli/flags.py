"""From a dataclass to flags: a command takes an object, its fields are what a user can type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Turn each parameter that is annotated with a dataclass into the fields of that class, as flags."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = [each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[each.name])
           for each in signature(command).parameters.values() if each.name not in groups]

    @wraps(command)
    def called(**given: Any) -> None:
        filled = {name: group(**{field.name: given.pop(field.name) for field in fields(group)})    # type: ignore[operator]
                  for name, group in groups.items()}
        command(**given, **filled)

    flags = own + [parameter for group in groups.values() for parameter in _parameters(group)]
    called.__signature__ = Signature(flags)    # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in flags}
    return called


def typed(group: Any, *but: str) -> list[str]:
    """What one would type for this object of flags: all that differs from the defaults, but for those named."""
    words: list[str] = []
    for field in fields(group):
        value, name = getattr(group, field.name), f"--{field.name.replace('_', '-')}"
        if value == field.default or field.name in but:
            continue
        if value is True:
            words.append(name)
        for each in value if isinstance(value, list) else [] if value is True else [value]:
            words += [name, str(each)]
    return words


def _parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in fields(group)]
