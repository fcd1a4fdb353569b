"""Answers: reproductions and the verdict by name, as tables and as plain records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan, prod
from typing import TYPE_CHECKING, Any, Protocol

from simulator.errors import InputError, choose
from simulator.metrics import METRICS
from simulator.studies.reproduce.findings import Finding, Step, findings_of, ladder_of, number
from simulator.studies.reproduce.running import Progress, run_spec
from simulator.studies.reproduce.spec import NAMED, ORDER, Run, Spec, bundled_specs
from simulator.studies.reproduce.verdict import FACTORS, Row, VerdictSpec, conclusion, verdict_rows, verdict_spec
from simulator.tables import Table

if TYPE_CHECKING:
    import pandas as pd

VERDICT = "verdict"
NAMES = (*ORDER, VERDICT)
"""What can be reproduced, in the order in which it is told."""


class Answer(Protocol):
    """What a command shows of a reproduction, and of the verdict."""

    @property
    def name(self) -> str:
        """On the command line."""

    @property
    def facts(self) -> tuple[str, ...]:
        """Source and assumptions, a line each."""

    @property
    def told(self) -> str:
        """What comes out, in a sentence or two."""

    @property
    def missed(self) -> int:
        """Stated tolerances that were not kept."""

    @property
    def untested(self) -> int:
        """Rows for which no tolerance is stated."""

    def tables(self) -> list[Table]:
        """All that was found."""

    def frame(self) -> pd.DataFrame:
        """The numbers behind a figure."""

    def record(self) -> dict[str, Any]:
        """The same as one document."""


@dataclass(frozen=True)
class Reproduction:
    """A specification, answered.

    Attributes:
        spec: What was asked.
        findings: A claim each.
        ladder: Its rungs; empty where there is none.
    """

    spec: Spec
    findings: tuple[Finding, ...]
    ladder: tuple[Step, ...]

    @property
    def name(self) -> str:
        """On the command line."""
        return self.spec.name

    @property
    def facts(self) -> tuple[str, ...]:
        """Source, assumptions, step costs and runs, a line each."""
        spec = self.spec
        costs = (f"assumed step costs, {name}: {cost.name}, in ms ({cost.why})" for name, cost in spec.costs.items())
        runs = (f"run {name}: {_run(spec, run)}" for name, run in spec.runs.items())
        return (f"source: {spec.source}", *(f"assumed: {each}" for each in spec.assumptions), *costs, *runs)

    @property
    def told(self) -> str:
        """What comes out, and whether it is near enough."""
        shown = {found.claim.what: found.shown for found in self.findings}
        said = NAMED.sub(lambda name: shown[name[1]], self.spec.answer)
        stated = len(self.findings) - self.untested
        kept = f"{self.missed} of {stated} are missed" if self.missed else f"all {stated} are kept"
        return f"{said} Stated tolerances: {kept}."

    @property
    def missed(self) -> int:
        """Claims whose tolerance was not kept."""
        return sum(found.holds is False for found in self.findings)

    @property
    def untested(self) -> int:
        """Claims without a tolerance."""
        return sum(found.holds is None for found in self.findings)

    def tables(self) -> list[Table]:
        """Published beside ours, and the ladder if there is one."""
        made = [self._claims(), self._ladder()]
        return [table for table in made if table.rows]

    def frame(self) -> pd.DataFrame:
        """A row a claim with a published number: our number and the bounds of its tolerance, as multiples of it."""
        import pandas as pd
        told = [found for found in self.findings if found.claim.published and found.ours is not None]
        rows = [(found.claim.what, found.ours, found.claim.published, *(found.bounds or (nan, nan))) for found in told]
        frame = pd.DataFrame(rows, columns=["claim", "ours", "published", "lowest", "highest"])
        return frame.assign(**{name: frame[name] / frame["published"] for name in ("ours", "lowest", "highest")})

    def orders(self) -> pd.DataFrame:
        """A row a run of a claim about an order: the claim, the run, and its value."""
        import pandas as pd
        rows = [(found.claim.what, run, value) for found in self.findings
                for run, value in zip(found.claim.order, found.values, strict=False)]
        return pd.DataFrame(rows, columns=["claim", "run", "value"])

    def _claims(self) -> Table:
        rows = tuple((_what(found), number(found.claim.published), found.shown, _percent(found.deviation),
                      found.tolerance, KEPT[found.holds]) for found in self.findings)
        return Table(f"{self.name}: {self.spec.title}",
                     ("", self.spec.beside, "ours", "deviation", "tolerance", "kept"), rows)

    def _ladder(self) -> Table:
        factors = [step.factor for step in self.ladder if step.factor is not None]
        rows = [(step.what, number(step.value), "" if step.factor is None else f"x {step.factor:.2f}")
                for step in self.ladder]
        if rows:
            whole = f"x {prod(factors):.2f}" if len(factors) == len(self.ladder) - 1 else "-"
            rows.append(("all of it", "", whole))
        unit = METRICS[self.spec.ladder_metric].label
        return Table(f"{self.name}: what each change is worth, in this order", ("", unit, "factor"), tuple(rows))

    def record(self) -> dict[str, Any]:
        """All of it as one document."""
        spec = self.spec
        return {"name": spec.name, "title": spec.title, "source": spec.source, "answer": self.told,
                "assumptions": list(spec.assumptions),
                "costs": {name: {"formula": cost.name, "why": cost.why} for name, cost in spec.costs.items()},
                "runs": {name: {**spec.scenario, **run.scenario, "knobs": run.knobs, "workload": run.workload,
                                "cost": run.cost, "seed": spec.seed,
                                "search": vars(run.search) if run.search else None}
                         for name, run in spec.runs.items()},
                "findings": [found.record() for found in self.findings], "missed": self.missed,
                "ladder": [vars(step) for step in self.ladder]}


KEPT = {True: "yes", False: "NO", None: "-"}


@dataclass(frozen=True)
class Verdict:
    """Where "10-20x" holds.

    Attributes:
        spec: What was asked.
        rows: Every trace against every baseline.
    """

    spec: VerdictSpec
    rows: tuple[Row, ...]
    missed: int = 0
    untested: int = 0

    @property
    def name(self) -> str:
        """On the command line."""
        return self.spec.name

    @property
    def facts(self) -> tuple[str, ...]:
        """Source and assumptions, a line each."""
        return (f"source: {self.spec.source}", *(f"assumed: {each}" for each in self.spec.assumptions))

    @property
    def told(self) -> str:
        """How often it holds."""
        return conclusion(self.rows)

    def frame(self) -> pd.DataFrame:
        """A row a ratio: trace, baseline and the three factors."""
        import pandas as pd
        rows = [(row.trace, row.baseline.label, row.slots, row.memory, row.padding) for row in self.rows]
        return pd.DataFrame(rows, columns=["trace", "baseline", *FACTORS])

    def tables(self) -> list[Table]:
        """The verdict."""
        rows = tuple((row.trace, row.baseline.label, f"{row.slots:.2f}", f"{row.memory:.2f}",
                      f"{row.ragged:.1f} {row.stands(row.ragged)}", f"{row.padding:.2f}",
                      f"{row.padded:.1f} {row.stands(row.padded)}", row.cause(padded=True)) for row in self.rows)
        head = ("trace", "slots x tokens reserved", "slots", "x memory", "= ragged", "x padding", "= padded", "largest")
        return [Table(f"{self.name}: {self.spec.title}", head, rows)]

    def record(self) -> dict[str, Any]:
        """All of it as one document."""
        spec = self.spec
        return {"name": spec.name, "title": spec.title, "source": spec.source, "assumptions": list(spec.assumptions),
                "range": list(spec.range), "rows": [row.record() for row in self.rows],
                "conclusion": conclusion(self.rows), "missed": self.missed}


def asked(names: Sequence[str]) -> tuple[str, ...]:
    """The names that are meant, each once; "all" stands for all. Raises InputError for one that is none."""
    known = [choose("reproduction", name, ("all", *NAMES)) for name in names]
    if not known:
        raise InputError(f"reproduce needs a name (known: all, {', '.join(NAMES)})")
    return NAMES if "all" in known else tuple(dict.fromkeys(known))


def reproduce(names: Sequence[str] = NAMES, *, seed: int = 0,
              progress: Progress | None = None) -> tuple[Answer, ...]:
    """Run the bundled specifications of these names again; "all" stands for all of them. `seed` is of what is drawn.

    Raises InputError for a name that is none, before anything is run.
    """
    return tuple(_answers(asked(names), seed, progress))


def _answers(names: Sequence[str], seed: int, progress: Progress | None) -> Iterator[Answer]:
    for name in names:
        if name == VERDICT:
            claim = verdict_spec()
            yield Verdict(claim, verdict_rows(claim, seed, progress))
        else:
            spec = replace(bundled_specs()[name], seed=seed)
            measured = run_spec(spec, progress)
            yield Reproduction(spec, findings_of(spec, measured), ladder_of(spec, measured))


def _what(found: Finding) -> str:
    return f"{found.claim.what} ({found.claim.note})" if found.claim.note else found.claim.what


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _run(spec: Spec, run: Run) -> str:
    """A run in words: its policy, and all that tells it from others."""
    told = [f"{name}={value}" for name, value in run.knobs.items()]
    told += [f"{name}={value}" for name, value in run.scenario.items() if name != "policy"]
    told += [f"costs of {run.cost}"] if run.cost else []
    if run.search:
        bounds = " and ".join(f"{name} <= {bound:g}" for name, bound in run.search.within.items())
        told.append(f"the highest request rate with {bounds}")
    return ", ".join([str({**spec.scenario, **run.scenario}["policy"]), *told])
