"""Engine: how one engine's launch command is spelled, and what each of its flags is to a scenario. It knows no engine.

A flag is mapped to a field or a knob, or it is known and left aside: because it changes no schedule, or because what it
changes is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

Fields = dict[str, Any]
"""Fields of Scenario; knobs under "knobs"."""
Arity = Literal["switch", "one", "many"]
KERNELS = "the speed of other kernels"
MARKS: dict[str, Arity] = {"!": "switch", "+": "many"}
SWITCHES = ("enable-", "disable-", "no-", "skip-")
"""How the names of switches begin, where only their family is known."""


class NotModelled(Exception):
    """A value that means something which no scenario can say; the message says what."""


@dataclass(frozen=True)
class Flag:
    """A flag that a scenario knows.

    Attributes:
        target: The field, or "knobs.NAME".
        read: From its text to the value; raises ValueError for what cannot be, NotModelled for what is not modelled.
        arity: "switch" takes no value, or true or false; "many" takes all words up to the next flag.
        when_set: What a switch without a value says.
    """

    target: str
    read: Callable[[str], Any] = str
    arity: Arity = "one"
    when_set: Any = True

    @property
    def path(self) -> tuple[str, str | None]:
        """The field, and the name inside of it if there is one."""
        name, _, inner = self.target.partition(".")
        return name, inner or None


class Known(NamedTuple):
    """A flag by its own name: what it is mapped to, or what it does that is not modelled; None: it changes nothing."""

    name: str
    meaning: Flag | str | None
    arity: Arity


@dataclass(frozen=True)
class Engine:
    """An engine's launch command.

    Attributes:
        name: As people call it.
        policy: That mirrors it.
        starts: Words by which its command begins, longest first; what stands before is no part of it.
        images: Parts of the names of container images whose arguments are its flags.
        model_flag: That names the model, where it does not stand alone.
        flags: What is mapped, by flag without its dashes, dashes inside.
        aliases: Other spellings.
        aside: Flags that change no schedule: names between blanks, "!" after a switch, "+" after one with many values.
            A name that ends in "*" stands for the family of all that begin so.
        unmodelled: By what they do, flags whose effect is not modelled, spelled in the same way.
        files: Flags that name a YAML file with more flags.
        finish: From the fields and the words left over for it to the fields as they are in the end.
    """

    name: str
    policy: str
    starts: tuple[str, ...]
    images: tuple[str, ...]
    model_flag: str
    flags: Mapping[str, Flag]
    aliases: Mapping[str, str] = field(default_factory=dict)
    aside: str = ""
    unmodelled: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    finish: Callable[[Fields, Fields], Fields] = lambda fields, extra: fields

    def lookup(self, written: str) -> Known | None:
        """What there is to know of a flag as it was written; None if the engine has no such flag."""
        name = written.lstrip("-").replace("_", "-")
        if written.startswith("-O"):    # -O3: the value is part of the word; -O 3: it follows
            arity: Arity = "one" if written == "-O" else "switch"
            return Known("compilation-config", self.flags.get("compilation-config", KERNELS), arity)
        return self._named(name) or self._named(name.partition(".")[0])    # --a.b 1 sets b inside of a

    def _named(self, name: str) -> Known | None:
        name = self.aliases.get(name, name)
        if name == self.model_flag or name in self.files:
            return Known(name, None, "one")
        if name in self.flags:
            return Known(name, self.flags[name], self.flags[name].arity)
        if found := self._listed.get(name):
            return found
        family = next((each for each in self._listed if each.endswith("*") and name.startswith(each[:-1])), None)
        if family is None:
            return None
        return Known(name, self._listed[family].meaning, "switch" if name.startswith(SWITCHES) else "one")

    @cached_property
    def _listed(self) -> dict[str, Known]:
        """All flags that are not mapped, families with their star."""
        words = ((word, reason) for reason, listed in ((None, self.aside), *self.unmodelled.items())
                 for word in listed.split())
        return {(name := word.rstrip("!+")): Known(name, reason, MARKS.get(word[-1], "one")) for word, reason in words}

    def names(self) -> list[str]:
        """All flags that it knows, for a hint."""
        return [*self.flags, *(name for name in self._listed if "*" not in name)]
