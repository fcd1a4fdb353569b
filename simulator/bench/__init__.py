"""bench: how fast batchsim itself is, on this machine, workload by workload. It says nothing about any engine.

Read `workloads` for what is run, `work` for what one attempt is, `measuring` for the clock and the memory, `running`
for the whole, `report` for the tables.

    >>> from simulator.bench import bench
    >>> [found] = bench(["planning"], quick=True).measurements
    >>> found.policy, found.rows, found.plans, found.steps
    ('vllm', 1000, 1858, 3785)
"""

from simulator.bench.measuring import Measurement
from simulator.bench.running import Bench, bench
from simulator.bench.workloads import WORKLOADS, Case, Workload

__all__ = ["WORKLOADS", "Bench", "Case", "Measurement", "Workload", "bench"]
