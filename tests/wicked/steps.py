"""Policies whose steps cannot be run as they stand. Each says in its docstring what it does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from simulator.request import Request
from simulator.step import Step
from wicked.honest import Honest, Spoiled


def cheating(name, doc, told, tokens):
    """A policy that gives the first chunk of each step so many tokens."""
    def spoil(self, step, queue, memory, now):
        if step.chunks:
            step.chunks[0] = step.chunks[0][0], tokens(step.chunks[0][1])
        return step

    return type(name, (Spoiled,), {"__doc__": doc, "told": told, "spoil": spoil, "__module__": __name__})


def odd(name, told, **fields):
    """A policy whose second step has these fields."""
    def spoil(self, step, queue, memory, now):
        return replace(step, **fields) if now else step

    doc = f"gives a step with {', '.join(f'{field}={value!r}' for field, value in fields.items())}"
    return type(name, (Spoiled,), {"__doc__": doc, "told": told, "spoil": spoil, "__module__": __name__})


CHUNK = "planned a chunk of {} tokens for request 0"
WHOLE = "gave a step whose {} is {}: it must be a whole number of at least {}"
KNOWN = "(known: cap, budget, memory, fragmentation, batch)"
PAIR = "it must be a pair of a request and tokens"
LIST = "gave a step whose {} is {}: it must be a list"
UNSENT = "lists {} as preempted, which it did not send back (queue.preempt)"
TIMES = "repeats a step {} times: 1,048,576 is the most, and 1 with chunks"

Negative = cheating("Negative", "asks for negative tokens", f"{CHUNK.format(-3)}, which lacks 20", lambda tokens: -3)
Zero = cheating("Zero", "asks for no token", f"{CHUNK.format(0)}, which lacks 20", lambda tokens: 0)
Half = cheating("Half", "asks for half a token", f"{CHUNK.format(0.5)}: it must be an int", lambda tokens: 0.5)
Float = cheating("Float", "asks for tokens as a float", f"{CHUNK.format(20.0)}: it must be an int", float)
Third = cheating("Third", "asks for a third of a token", f"{CHUNK.format('Fraction(1, 3)')}: it must be an int",
                 lambda tokens: Fraction(1, 3))
Words = cheating("Words", "asks for tokens in words", f"{CHUNK.format(repr('all'))}: it must be an int",
                 lambda tokens: "all")
Bool = cheating("Bool", "asks for True tokens", f"{CHUNK.format(True)}: it must be an int", lambda tokens: True)
NoTokens = cheating("NoTokens", "asks for None tokens", f"{CHUNK.format(None)}: it must be an int", lambda tokens: None)
More = cheating("More", "asks for more tokens than are lacking", f"{CHUNK.format(21)}, which lacks 20",
                lambda tokens: tokens + 1)
Huge = cheating("Huge", "asks for 2^80 tokens", f"{CHUNK.format(1 << 80)}, which lacks 20", lambda tokens: 1 << 80)

NoTimes = odd("NoTimes", WHOLE.format("times", 0, 1), times=0)
LessTimes = odd("LessTimes", WHOLE.format("times", -2, 1), times=-2)
PartTimes = odd("PartTimes", WHOLE.format("times", 1.5, 1), times=1.5)
ManyTimes = odd("ManyTimes", TIMES.format("1,000,000,000,000"), times=10 ** 12)
Hurries = odd("Hurries", WHOLE.format("delay", -5, 0), delay=-5)
Delays = odd("Delays", WHOLE.format("delay", "nan", 0), delay=float("nan"))
Spends = odd("Spends", "computes 3 rows of finished requests, and 0 are held", spent=3)
Narrow = odd("Narrow", WHOLE.format("pad_to", -1, 0), pad_to=-1)
Blocked = odd("Blocked", f"gave a step blocked by 'weather' {KNOWN}", blocked="weather")
BlockedByList = odd("BlockedByList", f"gave a step blocked by [] {KNOWN}", blocked=[])
NoChunks = odd("NoChunks", LIST.format("chunks", None), chunks=None)
Lazy = odd("Lazy", "gave a step whose chunks is <generator object", chunks=(each for each in ()))
NoPair = odd("NoPair", f"gave a chunk 3: {PAIR}", chunks=[3])
NoRequest = odd("NoRequest", f"gave a chunk ('it', 3): {PAIR}", chunks=[("it", 3)])
Stranger = odd("Stranger", "runs request 99, which is not here", chunks=[(Request(99, 0, 5, 5), 5)])
PreemptsStranger = odd("PreemptsStranger", UNSENT.format("request 99"), preempted=[Request(99, 0, 5, 5)])
PreemptsWord = odd("PreemptsWord", UNSENT.format("'all'"), preempted=["all"])
NoPreempted = odd("NoPreempted", LIST.format("preempted", None), preempted=None)


class PadsShort(Spoiled):
    """pads to less than a prompt"""
    told = "pads to 3 tokens, but request 0 computes 20"

    def spoil(self, step, queue, memory, now):
        step.pad_to = 3
        return step


class Twice(Spoiled):
    """runs a request twice in one step"""
    told = "runs request 0 twice in one step"

    def spoil(self, step, queue, memory, now):
        step.chunks = [(step.chunks[0][0], 5)] * 2
        return step


class Unadmitted(Honest):
    """runs a request that waits"""
    told = "runs request 0, which waits: let it in first (queue.admit)"

    def plan(self, queue, memory, now):
        return Step([(queue.waiting[0], 5)])


class RunsDecodes(Spoiled):
    """gives a chunk to one who decodes"""
    told = "runs request 0, which decodes: it takes part without a chunk"

    def spoil(self, step, queue, memory, now):
        if now:
            step.chunks.insert(0, (queue.running[1], 1))
        return step


@dataclass
class RunsFinished(Spoiled):
    """runs a request that has finished and left"""
    told = "runs request 2, which has left"

    def leaving(self, finished, queue):
        type(self).gone = [*getattr(type(self), "gone", []), *finished]
        return finished

    def spoil(self, step, queue, memory, now):
        gone = vars(type(self)).get("gone", [])
        step.chunks += [(request, 1) for request in gone]
        return step


class RunsHeld(Spoiled):
    """keeps a request that has finished, and runs it"""
    told = "runs request 2, which has finished"

    def leaving(self, finished, queue):
        return []

    def spoil(self, step, queue, memory, now):
        step.chunks += [(request, 1) for request in queue.held.values()]
        return step


class Repeats(Honest):
    """gives the step of before again"""
    told = "runs request 0, which decodes: it takes part without a chunk"

    def plan(self, queue, memory, now):
        if not now:
            self.__dict__["kept"] = super().plan(queue, memory, now)
        return self.__dict__["kept"]


@dataclass
class Overfull(Spoiled):
    """lets in more than its own cap"""
    told = "runs 2 requests, and its cap is 1"
    max_num_seqs: int = 1


@dataclass
class Overspends(Spoiled):
    """computes more tokens than its own budget"""
    told = "computes 50 prompt tokens in a step, and its max_num_batched_tokens is 32"
    max_num_batched_tokens: int = 32


class RepeatsChunks(Spoiled):
    """repeats a step with chunks"""
    told = TIMES.format(2)

    def spoil(self, step, queue, memory, now):
        step.times = 2
        return step
