"""A deliberate change for regression checks: vLLM, but whoever has run longest is preempted."""

from dataclasses import dataclass
from pathlib import Path

from simulator.memory import Memory
from simulator.policies import Vllm
from simulator.request import Request
from simulator.step import Queue, Step

SOURCE = Path(__file__).read_text(encoding="utf-8")


@dataclass
class OldestFirst(Vllm):
    """vLLM with another victim."""

    def _preempt_youngest(self, queue: Queue, memory: Memory, step: Step) -> None:
        while not memory.take(queue.decoding, step.chunks):
            step.drop(queue.preempt(self.victim(queue), memory))

    def victim(self, queue: Queue) -> Request:
        return next(iter(queue.running.values()))
