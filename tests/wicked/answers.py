"""Policies that answer wrongly, or raise, or never get anywhere. Each says in its docstring what it does."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.errors import InputError
from simulator.step import Step, Wait
from wicked.honest import Honest, Spoiled


class Nothing(Honest):
    """returns None for ever"""
    told = "stalled at 0.000000 s, after 0 steps, with 0 of 3 answered"

    def plan(self, queue, memory, now):
        return None


class GivesUp(Spoiled):
    """returns None in the middle, with requests running"""
    told = "stalled at "

    def spoil(self, step, queue, memory, now):
        return step if now < 20 else None


class Dreamer(Honest):
    """waits a nanosecond, again and again"""
    told = "has waited 100,000 times since its latest step: return None to sleep until a request arrives"

    def plan(self, queue, memory, now):
        return Wait(now + 1)


class DreamsOn(Honest):
    """waits again and again while others run"""
    told = "has waited 100,000 times since its latest step: return None to sleep until a request arrives"

    def plan(self, queue, memory, now):
        return super().plan(queue, memory, now) if not now else Wait(now + 1)


class DreamsIdle(Honest):
    """waits again and again while nobody is there"""
    told = "has waited 100,000 times since its latest step: return None to sleep until a request arrives"

    def idle(self, queue, memory, now):
        return Wait(now + 1)


class WaitsForNow(Honest):
    """waits until now"""
    told = "waits until 0 ns, which is not later"

    def plan(self, queue, memory, now):
        return Wait(now)


class WaitsForThePast(Honest):
    """waits until a moment ago"""
    told = "waits until -5 ns, which is not later"

    def plan(self, queue, memory, now):
        return Wait(now - 5)


class WaitsForEver(Honest):
    """waits until infinity"""
    told = "waits until inf, which is no whole number of nanoseconds: return None to sleep until a request arrives"

    def plan(self, queue, memory, now):
        return Wait(float("inf"))


class WaitsTooLong(Honest):
    """waits for a thousand years"""
    told = "waits until 1180591620717411303424 ns, which is after 146 years"

    def plan(self, queue, memory, now):
        return Wait(1 << 70)


class WaitsForHalf(Honest):
    """waits until half a nanosecond"""
    told = "waits until 0.5, which is no whole number of nanoseconds: return None to sleep until a request arrives"

    def plan(self, queue, memory, now):
        return Wait(now + 0.5)


class Speaks(Honest):
    """returns a word"""
    told = "plan must return a Step, a Wait or None, not 'run'"

    def plan(self, queue, memory, now):
        return "run"


class Listed(Honest):
    """returns the chunks without a step"""
    told = "plan must return a Step, a Wait or None, not []"

    def plan(self, queue, memory, now):
        return []


class Sure(Honest):
    """returns True"""
    told = "plan must return a Step, a Wait or None, not True"

    def plan(self, queue, memory, now):
        return True


class Kind(Honest):
    """returns the class Step in place of one"""
    told = "plan must return a Step, a Wait or None, not <class 'simulator.step.Step'>"

    def plan(self, queue, memory, now):
        return Step


class Empty(Honest):
    """returns steps that compute nothing"""
    told = "planned a step that computes nothing"

    def plan(self, queue, memory, now):
        return Step()


class Pauses(Spoiled):
    """lets nobody take part in a step"""
    told = "planned a step that computes nothing"

    def spoil(self, step, queue, memory, now):
        return step if not now else Step(decodes=False)


class StepsWithNobody(Honest):
    """gives a step with nobody there"""
    told = "gives a step although nobody is there (idle)"

    def idle(self, queue, memory, now):
        return Step()


class Divides(Honest):
    """divides by zero"""
    told = "its plan raised an error (ZeroDivisionError: division by zero in answers.py, line "

    def plan(self, queue, memory, now):
        return 1 / 0


class Stops(Honest):
    """raises StopIteration"""
    told = "its plan raised an error (StopIteration in answers.py, line "

    def plan(self, queue, memory, now):
        return next(iter(()))


class Recurses(Honest):
    """calls itself for ever"""
    told = "its plan raised an error (RecursionError: maximum recursion depth exceeded"

    def plan(self, queue, memory, now):
        return self.plan(queue, memory, now)


class Asserts(Honest):
    """asserts what is not so, and says nothing"""
    told = "its plan raised an error (AssertionError in answers.py, line "

    def plan(self, queue, memory, now):
        assert queue.running


class Demanding(Exception):
    """Takes two arguments."""

    def __init__(self, one, other):
        super().__init__(one)


class RaisesItsOwn(Honest):
    """raises an error of its own that takes two arguments, and two lines"""
    told = "its plan raised an error (Demanding: one two in answers.py, line "

    def plan(self, queue, memory, now):
        raise Demanding("one\ntwo", 2)


class Refuses(Honest):
    """raises InputError in the middle of a run"""
    told = "its plan raised an error (InputError: not me in answers.py, line "

    def plan(self, queue, memory, now):
        raise InputError("not me")


class Peeks(Honest):
    """takes from an empty queue"""
    told = "its plan raised an error (IndexError: pop from an empty deque in answers.py, line "

    def plan(self, queue, memory, now):
        while True:
            queue.admit()


class LeavesNone(Honest):
    """returns None when it is asked who leaves"""
    told = "leaving must return a list of requests, not None"

    def leaving(self, finished, queue):
        return None


class LeavesAll(Honest):
    """lets go those who have not finished"""
    told = "lets go request 0, which has not finished, or has left before"

    def leaving(self, finished, queue):
        return list(queue.running.values())


class LeavesTwice(Honest):
    """lets go everybody twice"""
    told = "lets go request 2, which has not finished, or has left before"

    def leaving(self, finished, queue):
        return finished * 2


class LeavesNobody(Honest):
    """never lets go anybody"""
    told = "planned a step that computes nothing"

    def leaving(self, finished, queue):
        return []


class RunsOn(Spoiled):
    """never lets go anybody, and computes rows of those who have finished"""
    told = "has planned 100,000 times in a row nothing but rows of finished requests: let them go (leaving)"

    def leaving(self, finished, queue):
        return []

    def spoil(self, step, queue, memory, now):
        step.spent = len(queue.held)
        return step


class LeavingRaises(Honest):
    """raises when it is asked who leaves"""
    told = "its leaving raised an error (KeyError: 'who' in answers.py, line "

    def leaving(self, finished, queue):
        raise KeyError("who")


class Urgent(Honest):
    """has an urgency that raises"""
    told = "its urgency of request 0 raised ZeroDivisionError: division by zero in answers.py, line "

    def urgency(self):
        return lambda request: 1 / 0


class Unordered(Honest):
    """has an urgency of numbers and words"""
    told = "its urgency of request 2 raised TypeError: '<=' not supported between instances of 'str' and 'int'"

    def urgency(self):
        return lambda request: "now" if request.index == 2 else request.index


class NotANumber(Honest):
    """has an urgency that is NaN"""
    told = "its urgency of request 0 is nan, which has no order with nan"

    def urgency(self):
        return lambda request: float("nan")


@dataclass
class Turns(Spoiled):
    """turns its own knob while it runs"""
    told = "turned its own knob max_num_seqs from 4 to 7 while it ran: keep what changes in a field with init=False"
    max_num_seqs: int = 4

    def spoil(self, step, queue, memory, now):
        self.max_num_seqs = 7
        return step


@dataclass
class Fills(Spoiled):
    """keeps run state in a knob that its copies share"""
    told = "turned its own knob seen from [] to ["
    seen: list = field(default_factory=list)

    def spoil(self, step, queue, memory, now):
        self.seen.append(now)
        return step
