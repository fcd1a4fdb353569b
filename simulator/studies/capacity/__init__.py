"""Capacity: how many replicas for this traffic within these objectives, or how much traffic for these replicas.

Read in this order: `objectives` and `question` (what is asked), `traffic` (the runs), `sample` and `following` (what a
run tells a planner), `verdict` (how sure that is), `bound`, `search` and `solving` (the answer), `around` and `changes`
(why it is the answer, and what would change it), `costs`, `planning`.
"""

from simulator.studies.capacity.planning import Plan, plan

__all__ = ["Plan", "plan"]
