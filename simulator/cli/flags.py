"""From a dataclass to flags: a command takes an object, its fields are what a user can type.

The object also tells which of them were typed, for a flag left alone must not outvote a scenario file.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_type_hints

from typer import Context


@dataclass(frozen=True)
class Flags:
    """Base of what becomes flags.

    Attributes:
        given: Names of those that were typed, at whatever value.
    """

    given: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)


def with_flags(command: Callable[..., None], *, show_defaults: bool = True) -> Callable[..., None]:
    """Turn each parameter that is annotated with a dataclass into the fields of that class, as flags.

    A command whose flags are worth something else when left alone leaves their defaults out of its help.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = [each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[each.name])
           for each in signature(command).parameters.values() if each.name not in groups]

    @wraps(command)
    def called(context: Context, **values: Any) -> None:
        typed = frozenset(name for name in values if _was_typed(context, name))
        filled = {name: _filled(group, values, typed) for name, group in groups.items()}
        command(**values, **filled)

    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=Context)
    parameters = [parameter for group in groups.values() for parameter in _parameters(group)]
    flags = [context, *own, *(parameters if show_defaults else map(_silent, parameters))]
    called.__signature__ = Signature(flags)    # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in flags}
    return called


def _was_typed(context: Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _filled(group: Any, values: dict[str, Any], typed: frozenset[str]) -> Any:
    """The object of these flags; they are taken out of `values`."""
    names = [each.name for each in fields(group) if each.init]
    found = group(**{name: values.pop(name) for name in names})
    object.__setattr__(found, "given", typed & set(names))
    return found


def typed(group: Any, *but: str) -> list[str]:
    """What one would type for this object of flags: all that was typed or differs from its default, but those named."""
    words: list[str] = []
    hints = get_type_hints(type(group), include_extras=True)
    for each in fields(group):
        value, name = getattr(group, each.name), _spelled(each.name, hints[each.name])
        if not each.init or each.name in but or (value == each.default and each.name not in group.given):
            continue
        if value is True:
            words.append(name)
        for part in value if isinstance(value, list) else [] if value is True else [value]:
            words += [name, str(part)]
    return words


def _spelled(name: str, hint: Any) -> str:
    """How a flag is written: as its option says, else like the field."""
    options = getattr(hint, "__metadata__", ())
    said = [word for option in options for word in (option.default, *(option.param_decls or ()))
            if str(word).startswith("--")]    # behind Annotated the first name is where a default would be
    return str(said[0]) if said else f"--{name.replace('_', '-')}"


def _silent(parameter: Parameter) -> Parameter:
    """The same flag with no default in the help."""
    kind, *options = get_args(parameter.annotation)
    silent = tuple(map(copy, options))
    for option in silent:
        option.show_default = False
    return parameter.replace(annotation=Annotated[(kind, *silent)])


def _parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
            for each in fields(group) if each.init]
