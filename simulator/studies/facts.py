"""Facts of a comparison: what a reader must know of its inputs, and of who was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.facts import facts_of, trust_in
from simulator.remarks import remarks
from simulator.studies.batch_size import size_told
from simulator.studies.differences import UNMEASURED

if TYPE_CHECKING:
    from simulator.studies.compare import Comparison


def facts(found: Comparison) -> list[str]:
    """What a reader must know of the inputs: trace, declared lengths, pool, cost model, and who was left out."""
    return [*facts_of(found.results[found.labels[0], "trace"].setup), *_versions(found), *warnings(found)]


def inputs(found: Comparison) -> list[str]:
    """The same without who was left out, and with how far the cost model is to be trusted."""
    setup = found.results[found.labels[0], "trace"].setup
    return [*facts_of(setup), *trust_in(setup.cost), *_versions(found)]


def _versions(found: Comparison) -> list[str]:
    """Whom the policies mirror, and where the slots of a static one come from."""
    return [line for label in found.labels for line in (
        f"policy: {label} is {found.results[label, 'trace'].policy.version}",
        *size_told(found.results[label, "saturated"].setup))]


def warnings(found: Comparison) -> list[str]:
    """What is to be said of the runs, once where it is the same of all, and of chance if nobody measured it."""
    said = {label: remarks(found.results[label, "trace"]) for label in found.labels}
    common = [line for line in said[found.labels[0]] if all(line in lines for lines in said.values())]
    own = [f"{label}: {line}" for label, lines in said.items() for line in lines if line not in common]
    return [*common, *own, *([] if found.certainty else [UNMEASURED])]
