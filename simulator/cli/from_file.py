"""`--scenario FILE`: what a file says, with the flags that were typed over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from simulator.cli import values
from simulator.cli.flags import Flags
from simulator.cli.shaping import TRAFFIC
from simulator.errors import InputError
from simulator.idle import idle
from simulator.mistaken import READING
from simulator.scenario import Scenario
from simulator.scenarios import ScenarioFile, read_scenario

if TYPE_CHECKING:
    from simulator.cli.options import Common

READING_FLAGS = frozenset({"trace_format", *READING} - {"format"})
CHOSEN = ("policy", "knobs", "load")
"""Fields that commands ask for in their own ways."""


@dataclass(frozen=True)
class FromFile(Flags, ABC):
    """A scenario file beside flags; a subclass says what its flags are worth."""

    scenario_file: Annotated[str | None, Option("--scenario", metavar="FILE", rich_help_panel=TRAFFIC, help=(
        "A scenario: YAML as `batchsim init` writes it, or the JSON of a result, to run that again. Flags given beside "
        "it win; --set adds to its knobs."))] = None

    @abstractmethod
    def flags(self, common: Common) -> dict[str, Any]:
        """The fields of Scenario that the flags set, at their defaults or not, but for those in CHOSEN."""

    @property
    @abstractmethod
    def knobs(self) -> dict[str, Any]:
        """What --set says: values by "knob" or "policy.knob"."""

    def scenario(self, common: Common, **asked: str | None) -> dict[str, Any]:
        """The fields of Scenario, those that nobody said left out where there is a file.

        `asked` are the command's own flags for fields in CHOSEN, None if not typed; what it does not ask for is left
        out. With a policy come its knobs.
        """
        chosen = {name: value for name, value in asked.items() if value is not None}
        if self.file is None:
            return self.flags(common) | chosen | ({"knobs": self.knobs} if "policy" in asked else {})
        but = {*CHOSEN} - set(asked) - ({"knobs"} if "policy" in asked else set())
        fields = self.file.with_changes(self.typed(common) | chosen, but)
        return fields | ({"knobs": {**fields.get("knobs", {}), **self.knobs}} if "policy" in asked else {})

    @cached_property
    def file(self) -> ScenarioFile | None:
        """What the file says; None without one."""
        return None if self.scenario_file is None else read_scenario(self.scenario_file)

    def typed(self, common: Common) -> dict[str, Any]:
        """The fields whose flags were typed. Prices join the file's, as does a setting of reading of the same trace."""
        typed, all_flags = self.given | common.given, self.flags(common)
        changes = {name: value for name, value in all_flags.items() if name in typed}
        file = {} if self.file is None else self.file.fields
        if "prices" in changes:
            changes["prices"] = {**file.get("prices", {}), **changes["prices"]}
        if typed & READING_FLAGS:
            kept = {} if changes.get("trace", file.get("trace")) != file.get("trace") else file.get("reading", {})
            changes["reading"] = {**kept, **all_flags["reading"]}
        return changes

    @property
    def policy(self) -> str:
        """The policy of the file, vllm if it names none."""
        return str(Scenario.policy if self.file is None else self.file.fields.get("policy", Scenario.policy))

    def refuse_idle(self, *scenarios: Scenario, **also: str) -> None:
        """Raise InputError for a flag that was typed, and decides nothing in any of these scenarios.

        `also` are fields that the command itself has no use for, with the reasons.
        """
        for line in self.without_effect(*scenarios, **also):
            raise InputError(line)

    def without_effect(self, *scenarios: Scenario, **also: str) -> list[str]:
        """The same flags, a line each."""
        found = [idle(scenario) | also for scenario in scenarios]
        names = [name for name in sorted(self.given) if all(name in each for each in found)]
        return [f"--{name.replace('_', '-')} has no effect: {found[0][name]}" for name in names if found]

    def policies(self, flag: str, typed: str | None) -> tuple[str, ...]:
        """Those between the commas of a flag; if it was not typed, static and the policy of the file."""
        if typed is not None:
            return values.words(flag, typed)
        return "static", self.policy if self.policy != "static" else str(Scenario.policy)

    def knobs_for(self, *policies: str) -> dict[str, Any]:
        """Knobs of these policies by "policy.knob": those of the file where it names one of them, then what --set says.

        Raises InputError where the file's policy is one of them, and cannot be had again.
        """
        if self.file is None or self.policy not in policies:
            return self.knobs
        self.file.check("policy")
        found = self.file.fields.get("knobs", {})
        return {f"{self.policy}.{knob}": value for knob, value in found.items()} | self.knobs
