"""Policies that misuse the queue or the memory that they are lent. Each says in its docstring what it does."""

from __future__ import annotations

from simulator.memory.paged import Paged
from simulator.request import Request
from simulator.step import Step
from wicked.honest import Honest, Spoiled


class Drops(Spoiled):
    """drops a request from the queue"""
    told = "was lent 2 requests and gives back 1: plan may move them, and neither drop nor double any"

    def plan(self, queue, memory, now):
        queue.waiting.pop()
        return super().plan(queue, memory, now)


class DropsRunning(Spoiled):
    """drops a request that runs"""
    told = "was lent 3 requests and gives back 2: plan may move them, and neither drop nor double any"

    def spoil(self, step, queue, memory, now):
        if now:
            queue.running.popitem()
        return step


class Doubles(Spoiled):
    """moves the same request to running twice"""
    told = "was lent 2 requests and gives back 3: plan may move them, and neither drop nor double any"

    def spoil(self, step, queue, memory, now):
        queue.running[99] = queue.youngest
        return step


class AdmitsAgain(Spoiled):
    """lets in one who runs already"""
    told = "its plan raised an error (IndexError: deque index out of range in queues.py, line "

    def spoil(self, step, queue, memory, now):
        queue.admit(queue.youngest)
        return step


class Forgets(Spoiled):
    """takes somebody out of the decoding set and puts him nowhere"""
    told = "left 3 running, of whom 1 decode, 1 catch up: use the queue's own verbs"

    def spoil(self, step, queue, memory, now):
        if now:
            queue.decoding.leave(queue.running[1])
        return step


class PreemptsInSilence(Spoiled):
    """sends somebody back and does not say so"""
    told = "sent back request 1 and does not list it in the step's preempted"

    def spoil(self, step, queue, memory, now):
        if now:
            queue.preempt(queue.running[2], memory)
        return step


class PreemptsAndSleeps(Spoiled):
    """sends somebody back and gives no step"""
    told = "preempted request 1, and its plan returned None in place of a Step that lists it in its preempted"

    def spoil(self, step, queue, memory, now):
        if not now:
            return step
        queue.preempt(queue.running[2], memory)
        return None


class LiesAboutPreempting(Spoiled):
    """lists somebody as preempted who runs on"""
    told = "lists request 0 as preempted, which it did not send back (queue.preempt)"

    def spoil(self, step, queue, memory, now):
        if now:
            step.preempted.append(queue.running[1])
        return step


class PreemptsTwice(Spoiled):
    """sends the same request back twice"""
    told = "stops request 1, which does not run"

    def spoil(self, step, queue, memory, now):
        if now:
            victim = queue.running[2]
            queue.preempt(victim, memory)
            queue.preempt(victim, memory)
        return step


class PreemptsWhoWaits(Honest):
    """sends back one who waits"""
    told = "stops request 0, which does not run"

    def plan(self, queue, memory, now):
        queue.preempt(queue.waiting[0], memory)


class BackAtOnce(Spoiled):
    """preempts a request and runs it in the same step"""
    told = "preempted request 1 and let it in again in the same step"

    def spoil(self, step, queue, memory, now):
        if now:
            victim = queue.running[2]
            step.drop(queue.preempt(victim, memory))
            memory.grow(queue.admit(), victim.known)
            step.chunks.append((victim, victim.known))
        return step


class FreesTwice(Spoiled):
    """gives back the memory of one who runs on"""
    told = "gave back the memory of request 0, which still runs"

    def spoil(self, step, queue, memory, now):
        if now:
            memory.release(queue.running[1])
        return step


class FreesAgain(Spoiled):
    """gives back the same memory twice"""
    told = "gives back the memory of request 0, which holds none"

    def spoil(self, step, queue, memory, now):
        for _ in range(2 * bool(now)):
            memory.release(queue.running[1])
        return step


class FreesStranger(Spoiled):
    """gives back the memory of somebody who is not here"""
    told = "gives back the memory of request 99, which holds none"

    def spoil(self, step, queue, memory, now):
        stranger = Request(99, 0, 5, 5)
        stranger.reuse(5)
        memory.release(stranger)
        return step


class FreesWord(Spoiled):
    """gives back the memory of a word"""
    told = "gives back the memory of 'all', which holds none"

    def spoil(self, step, queue, memory, now):
        memory.release("all")
        return step


class GrowsStranger(Spoiled):
    """makes room for somebody who is not here"""
    told = "made room for request 99, which does not run"

    def spoil(self, step, queue, memory, now):
        memory.grow(Request(99, 0, 5, 5), 5)
        return step


class GrowsWaiting(Honest):
    """makes room for one who waits, and lets nobody in"""
    told = "made room for request 0, which does not run"

    def plan(self, queue, memory, now):
        memory.grow(queue.waiting[0], 5)


class GrowsLess(Spoiled):
    """asks for room for negative tokens"""
    told = "asks for room for -5 tokens of request 1: it takes a request, and an int of at least 0"

    def spoil(self, step, queue, memory, now):
        memory.grow(queue.youngest, -5)
        return step


class NeverAsks(Honest):
    """runs requests without asking for room"""
    told = "runs request 0 without room for it: ask memory.grow or memory.take first"

    def plan(self, queue, memory, now):
        head = queue.admit()
        return Step([(head, head.lacking)])


class NeverAsksAgain(Honest):
    """asks for room for prompts only, not for the tokens that follow"""
    told = "gave back 1 block of memory more than it took: every token that runs needs room (memory.take, memory.grow)"

    def plan(self, queue, memory, now):
        step = Step()
        while queue.waiting and memory.grow(queue.waiting[0], queue.waiting[0].known):
            step.chunks.append((queue.admit(), queue.youngest.lacking))
        return step if queue.running else None


class AsksTwice(Spoiled):
    """takes the room of each step twice"""
    told = "of memory held by nobody at the end"

    def spoil(self, step, queue, memory, now):
        memory.take(queue.decoding, ())
        return step


class PingPong(Honest):
    """has two requests throw each other out, so that neither gets on"""
    told = "has preempted in "

    def plan(self, queue, memory, now):
        step = Step()
        if queue.running:
            step.drop(queue.preempt(queue.youngest, memory, to_tail=True))
        memory.grow(queue.waiting[0], 4)
        step.chunks.append((queue.admit(), 4))
        return step


class Thrashes(Honest):
    """throws everybody out just before the first token"""
    told = "has preempted in "

    def plan(self, queue, memory, now):
        step = Step()
        for request in [each for each in queue.catching_up.values() if each.lacking == 1]:
            step.drop(queue.preempt(request, memory))
        step.chunks = [(request, 1) for request in queue.catching_up.values()]
        if not queue.running and not step.preempted and memory.grow(queue.waiting[0], queue.waiting[0].known):
            head = queue.admit()
            step.chunks.append((head, head.lacking - 1))
        return step


class StartsOver(Honest):
    """throws away what a request has computed, and begins again, for ever"""
    told = "times, and nobody got any further: "

    def plan(self, queue, memory, now):
        head = queue.youngest if queue.running else queue.admit()
        memory.release(head)
        head.reuse(0)
        memory.grow(head, 4)
        return Step([(head, 4)])


class Miscounts(Honest):
    """takes it that the prompts are computed already"""
    told = "gave back "

    def plan(self, queue, memory, now):
        for request in queue.waiting:
            request.reuse(request.prompt - 1)
        return super().plan(queue, memory, now)


class SteadyByClock(Spoiled):
    """says that it is steady, and lets nobody in before a time"""
    steady = True
    told = "says that it is steady, and changes its mind while everybody only decodes: set steady = False"

    def plan(self, queue, memory, now):
        if queue.running and now < 40:
            assert memory.take(queue.decoding, ())
            return Step()
        return Honest.plan(self, queue, memory, now)


class SteadyByCount(Spoiled):
    """says that it is steady, and pauses at every third plan"""
    steady = True
    told = "says that it is steady, and changes its mind while everybody only decodes: set steady = False"
    plans = 0

    def spoil(self, step, queue, memory, now):
        self.plans += 1
        step.blocked = None if self.plans % 3 else "cap"
        return step


class Hoards(Honest):
    """has a memory that gives what it does not have"""
    told = "holds more memory than there is, or gave back more than it took"

    def memory(self, deployment, outputs):
        class Generous(Paged):
            def take(self, decoding, chunks):
                self._free -= self.need(decoding, chunks) + 3
                return True

        return Generous(deployment.kv_capacity_tokens // 16, 16)


class NoMemory(Honest):
    """has no memory"""
    told = "memory must return a Memory such as Paged(blocks, 16), not None"

    def memory(self, deployment, outputs):
        return None


class NegativeMemory(Honest):
    """has a memory of fewer than no blocks"""
    told = "the capacity of its memory must be a whole number of at least 0, not -4"

    def memory(self, deployment, outputs):
        return Paged(-4, 16)


class MemoryRaises(Honest):
    """has a memory that raises"""
    told = "its plan raised an error (OSError: full in queues.py, line "

    def memory(self, deployment, outputs):
        class Broken(Paged):
            def grow(self, request, tokens):
                raise OSError("full")

        return Broken(10, 16)


class Shelf(Honest):
    """takes no request at its front door"""
    told = "max_outstanding must be a whole number of at least 1, not 0"

    @property
    def max_outstanding(self):
        return 0


class NoSlots(Honest):
    """has no slot"""
    told = "slots must be a whole number of at least 1, not 0"

    @property
    def slots(self):
        return 0


class ResolvesToNone(Honest):
    """resolves to nothing"""
    told = "resolve must return a policy, not None"

    def resolve(self, deployment):
        return None


class ResolveRaises(Honest):
    """raises when it is resolved"""
    told = "its resolve raised ZeroDivisionError: division by zero in queues.py, line "

    def resolve(self, deployment):
        return 1 / 0


class RoomOfWords(Honest):
    """has room for so many words"""
    told = "room must return None or whole numbers, one for each prompt, not 'plenty'"

    def room(self, prompt, deployment):
        return "plenty"
