"""Bound: how many replicas throughput alone asks for. It reads lengths, memory and step costs, and runs nothing.

Every output token is emitted by a step, and a step emits as many as requests may run at once: no more than the cap,
and no more than memory holds of contexts as long as theirs are on the mean while they decode. So the trace needs a
number of steps at least, and in full steps every token is as cheap as it gets, for all of them share one reading of the
weights. What prompts add to a full step comes on top, each token at the cheapest size of a chunk, without the reading
of earlier chunks; where a prefix cache may find prompts, nothing is counted for them. First tokens come with prompts,
and cost nothing more; but no step is cheaper than the cheapest there is.

The work must fit into the time from the first request to the last, and as long after it as the longest answer takes:
these requests may leave a backlog that is worked off when no more come. Traffic that goes on never lets it be worked
off; of that, a replica serves no more than one request in the time that its own work takes.
It is a bound where fuller steps are never dearer a token, as in every bundled cost model. It says nothing of latency:
bursts, prefills and half-filled steps come on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from cost_models import StepShape
from simulator.counting import counted
from simulator.memory.base import UNLIMITED
from simulator.setup import Setup
from simulator.studies.capacity.objectives import Objective

CHUNKS = (128, 256, 512, 1024, 2048, 4096, 8192)
"""Sizes of prompt chunks among which the cheapest a token is sought."""
MOST = 1 << 20
"""Sequences in a step where nothing bounds them."""


@dataclass(frozen=True)
class Bound:
    """Why fewer replicas cannot serve the trace.

    Attributes:
        replicas: The fewest that throughput allows, if no more requests come.
        at_once: Sequences in a full step.
        limit: What bounds them: "cap", "KV" or "requests".
        steps: Full steps that all output tokens take.
        decode, prefill: Seconds of one replica that output tokens and prompts take at least.
        available: Seconds in which that must be done.
        context: Tokens that a sequence reads in a step, on the mean.
        requests: How many there are.
        span: Seconds in which they come.
    """

    replicas: int
    at_once: int
    limit: str
    steps: float
    decode: float
    prefill: float
    available: float
    context: float
    requests: int
    span: float

    @property
    def rate(self) -> float:
        """Requests a second of which a replica cannot serve more in the long run."""
        work = self.decode + self.prefill
        return self.requests / work if work else inf

    @property
    def lasting(self) -> int:
        """The fewest replicas that throughput allows if traffic goes on at this rate, and no backlog may grow."""
        if not self.span or self.requests < 2:
            return self.replicas
        offered = (self.requests - 1) / self.span
        return max(self.replicas, ceil(offered / self.rate - 1e-9))

    def told(self) -> str:
        """The bound and its reason in sentences."""
        of = {"cap": "the cap on sequences", "KV": f"KV cache at {self.context:,.0f} tokens each",
              "requests": "as many requests as there are"}[self.limit]
        prompts = f"prompts add {self.prefill:,.0f} s" if self.prefill else "prompts add nothing for certain"
        return (f"Throughput alone asks for {self._asked()}: at most {counted(self.at_once, 'sequence')} "
                f"run{'s' * (self.at_once == 1)} at once ({of}), so that the output tokens take "
                f"{counted(round(self.steps), 'full step')} and {self.decode:,.0f} s of one replica, {prompts}, and "
                f"requests come for {self.span:,.0f} s. These must be done in {self.available:,.0f} s, for the last "
                "answer may take as long after them as the longest takes, or is allowed to.")

    def _asked(self) -> str:
        """How many replicas, of this trace and of traffic without an end where that makes a difference."""
        if self.lasting == self.replicas:
            return f"{self.replicas:,} or more"
        return (f"{self.lasting:,} or more if traffic goes on at this rate, and for {self.replicas:,} or more if these "
                "requests are all, whose backlog may be worked off at the end")


def throughput_bound(setup: Setup, objectives: Sequence[Objective]) -> Bound:
    """The fewest replicas that can serve this traffic, by its work alone."""
    served = setup.verdict == 0
    prompt, output = setup.prompt[served].astype(float), setup.output[served].astype(float)
    tokens = float(output.sum())
    context = float((output * (prompt + (output - 1) / 2)).sum() / tokens) if tokens else 1.0
    at_once, limit = _at_once(setup, context, len(output))
    per_step = setup.cost.time(StepShape(at_once, max(1, round(at_once * context))))
    steps = tokens / at_once
    prefill = float(prompt.sum()) * _a_prompt_token(setup, at_once, context) / 1e9
    least = steps * min(setup.cost.time(shape) for shape in (StepShape(1, 1), StepShape(0, 0, ((1, 0),)))) / 1e9
    decode = max((tokens - len(output)) / at_once * per_step / 1e9, least - prefill)
    available = _available(setup, objectives)
    return Bound(max(1, ceil((decode + prefill) / available - 1e-9)) if available else 1, at_once, limit, steps, decode,
                 prefill, available, context, len(output), _span(setup))


def _at_once(setup: Setup, context: float, requests: int) -> tuple[int, str]:
    """Sequences in a full step, and what bounds them."""
    bounds = {"requests": max(requests, 1), "cap": setup.policy.slots}
    if setup.deployment.kv_capacity_tokens < UNLIMITED:
        bounds["KV"] = max(1, int(setup.deployment.kv_capacity_tokens // context))
    limit = min(bounds, key=lambda name: bounds[name])
    return min(bounds[limit], MOST), limit


def _a_prompt_token(setup: Setup, at_once: int, context: float) -> float:
    """What a prompt token adds to a full step at least, ns."""
    memory = setup.policy.memory(setup.deployment, setup.output)
    if memory.empty is not None and setup.trace.knows_prefixes:
        return 0.0
    full = max(1, round(at_once * context))
    alone = setup.cost.time(StepShape(at_once, full))
    return max(0.0, min((setup.cost.time(StepShape(at_once, full, ((tokens, 0),))) - alone) / tokens
                        for tokens in CHUNKS))


def _available(setup: Setup, objectives: Sequence[Objective]) -> float:
    """Seconds from the first request until all must be answered: the arrivals, and the longest answer after them."""
    longest = int(setup.output[setup.verdict == 0].max(initial=1))
    alone = longest * setup.cost.time(StepShape(1, int(setup.prompt.max(initial=1)) + longest))
    return _span(setup) + max([alone, *(_latest(objective, longest) for objective in objectives)]) / 1e9


def _span(setup: Setup) -> float:
    """Seconds from the first request to the last."""
    arrival = setup.trace.arrival
    return float(arrival[-1] - arrival[0]) / 1e9 if len(arrival) else 0.0


def _latest(objective: Objective, longest: int) -> float:
    """When the longest answer may be done at the latest to keep the limits, ns; 0 where they do not say."""
    limits = objective.limits
    if "e2el" in limits:
        return limits["e2el"] * 1e6
    return (limits["ttft"] + limits["tpot"] * (longest - 1)) * 1e6 if {"ttft", "tpot"} <= set(limits) else 0.0


