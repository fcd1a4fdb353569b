"""Checking a directory of recordings against a policy: every scenario in it, in every mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from cost_models import choose
from simulator.conformance.comparing import MODES, Difference, Mode, Outcome, compare
from simulator.conformance.engine import Engine
from simulator.conformance.recording import Recording, find
from simulator.conformance.sglang import sglang_case
from simulator.conformance.tensorrt_llm import tensorrt_llm_case
from simulator.conformance.tgi import tgi_case
from simulator.conformance.vllm import vllm_case
from simulator.errors import InputError

ENGINES: Mapping[str, Engine] = {"sglang": sglang_case, "tensorrt_llm": tensorrt_llm_case, "tgi": tgi_case,
                                 "vllm": vllm_case}
"""Engines whose recordings can be read, and what makes a case of one."""


@dataclass(frozen=True)
class Verdict:
    """One scenario, in all the modes that were asked for, or up to the first that differs."""

    name: str
    outcomes: tuple[Outcome, ...]

    @cached_property
    def difference(self) -> Difference | None:
        """The first difference; None if there is none."""
        return self.outcomes[-1].difference

    @property
    def identical(self) -> bool:
        """Whether every mode took every decision of the recording."""
        return self.difference is None

    @property
    def steps(self) -> int:
        """Steps that are identical in all the modes."""
        return min(outcome.steps for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        last = self.outcomes[-1]
        difference = last.difference and {"mode": last.mode, **last.difference.to_dict()}
        return {"name": self.name, "identical": self.identical, "steps": self.steps,
                "modes": [outcome.mode for outcome in self.outcomes],
                "unrecorded": list(last.unrecorded), "difference": difference}


def recordings(directory: Path | str, only: Sequence[str] = ()) -> list[Recording]:
    """The scenarios of a directory, all of them or those whose names match one of the patterns `only`.

    Raises InputError if it is no directory or a scenario lacks a file.
    """
    path = Path(directory)
    if not path.is_dir():
        raise InputError(f"{path} is {'not a directory' if path.exists() else 'not there'}: "
                         "give a directory of recordings")
    found = find(path)
    names = [recording.name for recording in found]
    for pattern in only if found else ():
        if not any(fnmatchcase(name, pattern) for name in names):
            choose("scenario", pattern, names)
    return [each for each in found if not only or any(fnmatchcase(each.name, pattern) for pattern in only)]


def check(recording: Recording, engine: Engine | str, modes: Sequence[Mode] = MODES) -> Verdict:
    """Replay one scenario in each mode, up to the first that differs."""
    make = ENGINES[choose("engine", engine, ENGINES)] if isinstance(engine, str) else engine
    outcomes: list[Outcome] = []
    for mode in modes:
        outcomes.append(compare(recording, make, mode))
        if outcomes[-1].difference:
            break
    return Verdict(recording.name, tuple(outcomes))


def conformance(engine: Engine | str, directory: Path | str, *, modes: Sequence[Mode] = MODES,
                only: Sequence[str] = ()) -> Iterator[Verdict]:
    """Check every scenario of a directory, one by one."""
    if isinstance(engine, str):
        choose("engine", engine, ENGINES)
    return (check(recording, engine, modes) for recording in recordings(directory, only))
