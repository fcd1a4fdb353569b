"""Does the profile predict its own machine? One short workload, run for real under two policies, and simulated.

The profile knows nothing of these runs: it was fitted to steps that were timed before, one by one. Both sides take the
same decisions, so that only the time of the steps differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log

import numpy as np
import torch

from calibration.attention.gather import GatherAndAttend
from calibration.engine import Engine, said_alone
from calibration.live import Stopwatch, run_live
from calibration.llama import Llama
from calibration.run import Calibration, Job
from calibration.shard import TINY, Shard
from cost_models.catalogue import PROFILED
from simulator.policies import Policy, StaticBatching, Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.tables import Table
from traces import Trace


@dataclass(frozen=True)
class Workload:
    """How much is run.

    Attributes:
        requests: How many, all there at the start.
        prompt, output: Fewest and most tokens; lengths are spread evenly over their logarithm.
        batch: Slots.
        budget: Tokens a step under vllm.
    """

    requests: int
    prompt: tuple[int, int]
    output: tuple[int, int]
    batch: int
    budget: int

    def trace(self, seed: int) -> Trace:
        """Its requests."""
        rng = np.random.default_rng([seed, 3])
        prompt, output = (np.exp(rng.uniform(log(fewest), log(most), self.requests)).astype(np.int64)
                          for fewest, most in (self.prompt, self.output))
        return Trace("validation", np.zeros(self.requests, np.int64), prompt, output)

    @property
    def tokens(self) -> int:
        """KV cache that a full batch of the longest requests needs, and a little more."""
        return (self.batch + 1) * (self.prompt[1] + self.output[1])

    def policies(self, page_size: int) -> tuple[Policy, Policy]:
        """Static and continuous batching with the same slots."""
        return (StaticBatching(max_batch_size=self.batch),
                Vllm(max_num_seqs=self.batch, max_num_batched_tokens=self.budget, block_size=page_size,
                     enable_prefix_caching=False))


ON_GPU = Workload(requests=96, prompt=(32, 256), output=(16, 512), batch=32, budget=2048)
ON_CPU = Workload(requests=48, prompt=(4, 24), output=(4, 96), batch=8, budget=128)
FOR_TOKENS = Workload(requests=16, prompt=(4, 48), output=(2, 32), batch=4, budget=32)


@dataclass(frozen=True)
class Validation:
    """What came of it.

    Attributes:
        measured, simulated: A result a policy, static first.
        same_tokens: Requests that said the same under both policies and alone, in float32.
        requests: How many were asked.
    """

    measured: tuple[Result, Result]
    simulated: tuple[Result, Result]
    same_tokens: int
    requests: int

    def table(self) -> Table:
        """Measured against simulated."""
        rows = [(name, f"{real:,.4g}", f"{said:,.4g}", f"{100 * (said / real - 1):+.1f}%")
                for name, real, said in self.figures()]
        note = (f"{self.same_tokens} of {self.requests} requests said the same under both policies and alone "
                "(float32, greedy). The time that the policies themselves take is on neither side; on a CPU, seconds "
                "are those that the engine had the CPU.")
        return Table("Run for real and simulated", ("", "measured", "simulated", "error"), tuple(rows), note)

    def figures(self) -> Iterator[tuple[str, float, float]]:
        """Name, measured and simulated value."""
        for real, said in zip(self.measured, self.simulated, strict=True):
            yield f"{real.policy.name}: makespan, s", _makespan(real), _makespan(said)
            yield f"{real.policy.name}: mean step, ms", _mean_step(real), _mean_step(said)
            yield f"{real.policy.name}: steps", len(real.record.ends), len(said.record.ends)
        ratios = [_makespan(static) / _makespan(vllm) for static, vllm in (self.measured, self.simulated)]
        yield "static over vllm, makespan", *ratios    # type: ignore[misc]


def _makespan(result: Result) -> float:
    """Seconds until the last step has ended."""
    return float(result.record.ends[-1]) / 1e9


def _mean_step(result: Result) -> float:
    return 1e3 * _makespan(result) / len(result.record.ends)


def validate(job: Job, found: Calibration) -> Validation:
    """Run the workload for real and simulate it with the profile."""
    load = ON_GPU if job.machine.is_gpu else ON_CPU
    page_size = found.chosen.page_size
    policies = load.policies(page_size)
    cost = PROFILED[found.profile.fit.form](found.profile)
    _live(found.model, replace(load, requests=load.batch, output=(2, 8)), policies[1], page_size, job.seed)    # warm up
    measured = [_live(found.model, load, policy, page_size, job.seed)[0] for policy in policies]
    simulated = [run(replace(_scenario(load, policy, found.model, job.seed), cost_model=cost)) for policy in policies]
    return Validation((measured[0], measured[1]), (simulated[0], simulated[1]), same_tokens(job), FOR_TOKENS.requests)


def same_tokens(job: Job) -> int:
    """How many requests of a small float32 model say the same under static and vllm and alone."""
    model = Llama(Shard.of(TINY), GatherAndAttend(), torch.float32, job.machine.torch_device, job.seed)
    trace, page_size = FOR_TOKENS.trace(job.seed), 16
    static, vllm = (_live(model, FOR_TOKENS, policy, page_size, job.seed)[1].tokens
                    for policy in FOR_TOKENS.policies(page_size))
    alone = {index: said_alone(model, prompt, static[index]) for index, prompt in enumerate(trace.prompt.tolist())}
    return sum(static[index] == vllm[index] and static[index][prompt:] == alone[index]
               for index, prompt in enumerate(trace.prompt.tolist()))


def _live(model: Llama, load: Workload, policy: Policy, page_size: int, seed: int) -> tuple[Result, Engine]:
    engine = Engine(model, load.tokens // page_size + load.batch, page_size, seed)
    return run_live(_scenario(load, policy, model, seed), engine), engine


def _scenario(load: Workload, policy: Policy, model: Llama, seed: int) -> Scenario:
    return Scenario(trace=load.trace(seed), policy=policy, load="saturated", kv_capacity_tokens=load.tokens,
                    cost_model=Stopwatch(), max_tokens="exact", exact=True)
