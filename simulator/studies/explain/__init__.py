"""explain: what happens inside a batch, told from small runs - one short sequence, the ledgers, and three questions.

The story follows one request under each policy with the same slots and no other bound: the idea itself. The ledgers
are of the policies as they are, in one KV pool. The three questions have small studies of their own beside this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from simulator.counting import counted
from simulator.errors import InputError, choose
from simulator.facts import facts_of
from simulator.policies.base import Policy
from simulator.policies.making import make_policies
from simulator.replication import only_one_replica
from simulator.result import Result
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios.held import held, unchanged
from simulator.simulation import run
from simulator.studies.batch_size import size_told
from simulator.studies.contenders import slots_of, under
from simulator.studies.ending import short_request, tell
from simulator.studies.explain.answer import Answer
from simulator.studies.explain.contention import contention
from simulator.studies.explain.exhaustion import exhaustion
from simulator.studies.explain.following import moment_records, moments_table, strip_frame
from simulator.studies.explain.ledgers import TITLES, ledger_records, ledger_table
from simulator.studies.explain.paging import paging
from simulator.tables import Table
from simulator.traffic import read_trace
from traces import Trace

if TYPE_CHECKING:
    import pandas as pd

REQUESTS = 1000
"""The first so many of the trace, unless it is said how many."""
QUESTIONS = (paging, contention, exhaustion)

Progress = Callable[[int, int], None]
"""Called before each part with (parts done, parts in all)."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """What `explain` found.

    Attributes:
        used: Which requests of which trace were used, in words.
        request: The one that is followed.
        story: By policy, the saturated run with equal slots and no other bound in which it is followed.
        deployed: By policy, the saturated run with its own slots and the KV pool, whose ledgers are shown.
        answers: To the three questions.
    """

    used: str
    request: int
    story: Mapping[str, Result]
    deployed: Mapping[str, Result]
    answers: tuple[Answer, ...]

    @property
    def alike(self) -> str:
        """What the runs of the story are, in words."""
        slots = next(iter(self.story.values())).slots.count
        return f"saturated, {counted(slots, 'slot')} each, no other bound"

    def facts(self) -> list[str]:
        """The inputs in lines: what was asked of whom, where the times of steps come from, what was done to the trace.
        """
        setups = [result.setup for result in self.deployed.values()]
        sizes = [f"{line}; a longer trace may have a longer one, and fewer slots" for setup in setups
                 for line in size_told(setup)]
        return [f"requests: {self.used}", *facts_of(setups[0])[1:], *sizes, *setups[0].trace.report.notes]

    def told(self) -> dict[str, str]:
        """By policy, the end of the request in words."""
        return {label: tell(result, self.request) for label, result in self.story.items()}

    def moments(self) -> list[Table]:
        """By policy, the request step by step."""
        return [moments_table(result, self.request, label) for label, result in self.story.items()]

    def ledgers(self) -> list[Table]:
        """The three ledgers, policies side by side."""
        return [ledger_table(name, self.deployed, "saturated, own slots, one KV pool") for name in TITLES]

    def strips(self) -> dict[str, pd.DataFrame]:
        """By policy, the request, its slot and those around it as bars for a figure."""
        return {label: strip_frame(result, self.request) for label, result in self.story.items()}

    def answer(self, key: str) -> Answer:
        """The answer to one of the questions: "paging", "contention" or "exhaustion"."""
        by_key = {answer.key: answer for answer in self.answers}
        return by_key[choose("question", key, by_key)]

    def records(self) -> dict[str, Any]:
        """All of it as plain values: what ``--json`` prints."""
        steps = {label: moment_records(result, self.request) for label, result in self.story.items()}
        return {"requests": self.used, "facts": self.facts(), "request": self.request, "story": self.told(),
                "moments": steps, "ledgers": ledger_records(self.deployed),
                "answers": {answer.key: answer.records() for answer in self.answers}}


def explain(trace: Trace | str = "azure-conv-2023", policies: Sequence[Policy | str] = ("static", "vllm"), *,
            request: int | str = "shortest", settings: Mapping[str, Any] | None = None,
            progress: Progress | None = None, **options: Any) -> Explanation:
    """Follow one request through its batch under each policy, and answer the three questions that follow.

    `request` is a row of the trace, or "shortest": the shortest answer among those that get the first slots.
    `settings` and `options` are those of `compare`; `num_prompts` is 1,000 if not given.

    Example:
        >>> found = explain("azure-conv-2023", num_prompts=100)
        >>> found.request, found.answers[0].question
        (1, 'Why does it need paged memory?')
    """
    contenders = dict(zip(_labels(policies), make_policies(policies, settings), strict=True))
    scenario = held(scenario_of(trace=trace, **{"num_prompts": REQUESTS, **_given(options)}))
    only_one_replica("explain", scenario)
    with unchanged(scenario):
        whole = read_trace(scenario.but(num_prompts=None))
        scenario = held(scenario.but(read=whole.head(scenario.num_prompts or len(whole))), large=True)
    told = progress or (lambda done, of: None)
    parts = len(QUESTIONS) + 2
    told(0, parts)
    story = {label: run(alike) for label, alike in _equal_slots(scenario, contenders).items()}
    followed = _choose(request, story)
    told(1, parts)
    deployed = {label: run(under("saturated", scenario, policy)) for label, policy in contenders.items()}
    answers = []
    for done, question in enumerate(QUESTIONS, 2):
        told(done, parts)
        answers.append(question(scenario, run))
    told(parts, parts)
    return Explanation(_used(whole, scenario), followed, story, deployed, tuple(answers))


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without a number of requests that is not said."""
    return {name: value for name, value in options.items() if name != "num_prompts" or value is not None}


def _labels(policies: Sequence[Policy | str]) -> list[str]:
    labels = [policy if isinstance(policy, str) else policy.name for policy in policies]
    if len(set(labels)) < len(labels) or not labels:
        raise InputError(f"explain follows the request once under each policy: {', '.join(labels) or 'name one'}")
    return labels


def _equal_slots(scenario: Scenario, contenders: Mapping[str, Policy]) -> dict[str, Scenario]:
    """Each policy with the slots of the first one, and no bound on memory or on tokens a step."""
    slots = slots_of(under("saturated", scenario, next(iter(contenders.values()))))
    return {label: under("saturated", scenario, policy.bounded_by(slots)).but(kv_capacity_tokens=inf)
            for label, policy in contenders.items()}


def _choose(request: int | str, story: Mapping[str, Result]) -> int:
    """The request to follow; it must have finished under every policy."""
    first = next(iter(story.values()))
    rows = len(first.setup.output)
    if request == "shortest":
        found = short_request(first)
        if found is None:
            raise InputError("nobody ran, so there is nobody to follow: look at the trace with `batchsim trace "
                             "describe`")
        request = found
    if isinstance(request, str | bool) or request != int(request) or not 0 <= request < rows:
        raise InputError(f"request must be shortest or a row of the {rows:,} used, from 0 on, not {request!r}: give "
                         "num_prompts to use more")
    for label, result in story.items():
        if not result.has_finished(request):
            raise InputError(f"request {request} gets no answer from {label}: follow another one")
    return int(request)


def _used(whole: Trace, scenario: Scenario) -> str:
    assert scenario.read is not None
    rows = len(scenario.read)
    which = "all" if rows == len(whole) else f"the first {rows:,} of"
    return f"{which} {len(whole):,} requests of {whole.name} ({whole.source})"


__all__ = ["Explanation", "explain"]
