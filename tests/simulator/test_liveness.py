"""Whatever makes a run stand still - policy, client, router or autoscaler - it ends, and says who waits for what."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from wicked.answers import Nothing
from wicked.honest import Honest
from wicked.queues import PingPong
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.progress import Reach
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.step import Queue, Wait

AT_ONCE = [(0, 20, 6)] * 20
SECONDS = [(second * 10 ** 9, 20, 6) for second in range(20)]


def run(rows: list[tuple[int, ...]], policy: Any, **asked: Any) -> dict[str, Any]:
    return sim.simulate(trace_of(rows), policy, kv_capacity_tokens=160, max_model_len=100, cost_model=Constant(10),
                        **asked).summary()


STALLS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a closed loop whose clients never get an answer": (
        AT_ONCE, {"max_concurrency": 2}, "0 of 20 answered (0 running, 2 waiting, 10 of 10 blocks free; request 0 is "
        "first in line: 20 tokens, 2 blocks); its plan returned None, and so it sleeps: return a Step"),
    "a router that no replica takes anybody from": (
        AT_ONCE, {"replicas": 2, "queue_limit": 1, "overflow": "fcfs"},
        "0 of 20 answered, 18 wait at the router (0 running, 1 waiting"),
    "a router that sheds while its replicas sleep": (
        AT_ONCE, {"replicas": 2, "queue_limit": 1, "max_retries": 30, "retry_backoff": 0.0}, "0 of 20 answered"),
    "an autoscaler whose replicas sleep": (
        SECONDS, {"autoscale": "queue:2", "max_replicas": 4}, "0 of 20 answered (0 running, 20 waiting"),
    "an autoscaler whose replicas never start": (
        SECONDS, {"autoscale": "queue:2", "max_replicas": 4, "startup_delay": 1e7}, "0 of 20 answered"),
}


@pytest.mark.parametrize(("rows", "asked", "told"), STALLS.values(), ids=STALLS)
def test_a_stall_is_told(rows: list[tuple[int, ...]], asked: dict[str, Any], told: str) -> None:
    with pytest.raises(sim.StalledError) as error:
        run(rows, Nothing(), **asked)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bundled_policy_that_may_wait_for_ever_says_which_knob_lets_it() -> None:
    with pytest.raises(sim.StalledError, match=r"17 wait at the router \(0 running, 3 waiting.*lower max_wait"):
        run(AT_ONCE, "static", knobs={"max_wait": inf, "max_batch_size": 7}, queue_limit=3, overflow="fcfs")


@pytest.mark.parametrize("field", ["replicas", "min_replicas", "max_replicas", "queue_limit", "max_concurrency"])
def test_nobody_can_ask_for_nobody(field: str) -> None:
    with pytest.raises(sim.InputError, match=f"{field} must be a whole number of at least 1, not 0"):
        run(AT_ONCE, "vllm", **{field: 0})


def test_retries_without_a_pause_end() -> None:
    """Thirty tries within one instant, whoever says no: a router, a timeout, the engine's front door."""
    eager = {"max_retries": 30, "retry_backoff": 0.0}
    shed = run(AT_ONCE, "vllm", replicas=2, queue_limit=1, **eager)
    assert (shed["completed"], shed["failed"], shed["retried"]) == (2, 18, 18 * 30)
    late = run(AT_ONCE, "vllm", request_timeout=1e-9, **eager)
    assert (late["aborted"], late["timed_out"]) == (20, 20 * 31)
    asleep = run(AT_ONCE, Nothing(), request_timeout=1e-9, **eager)
    assert (asleep["aborted"], asleep["timed_out"]) == (20, 20 * 31)
    door = run(AT_ONCE * 10, "tgi", **eager)
    assert (door["completed"], door["failed"], door["retried"]) == (128, 72, 72 * 30)


def test_an_autoscaler_that_changes_its_mind_every_second_ends() -> None:
    scaled = run(SECONDS, "vllm", autoscale="queue:1", max_replicas=4, startup_delay=0.0, cooldown=0.0)
    assert scaled["completed"] == 20


def test_a_thrashing_replica_among_others_is_named() -> None:
    with pytest.raises(sim.PolicyError, match=r"has preempted in 2\d\d steps, request \d+ the latest, and nobody"):
        run(AT_ONCE, PingPong(), replicas=3)


def reach(*requests: Request, least: int = 3) -> Reach:
    queue = Queue(None)    # type: ignore[arg-type]
    for request in requests:
        queue.wait(request)
    return Reach(queue, Recorder(), least)


def test_standing_still_is_to_compute_nothing_new_between_two_looks() -> None:
    request = Request(0, 0, 50, 50)
    looks = reach(request)
    said = []
    for at in range(12):
        request.reuse(at if at < 6 else 0)
        said.append(looks.stands_still())
    assert [at for at, still in enumerate(said) if still] == [8, 11]


def test_who_has_lost_much_may_take_as_long_to_compute_it_again() -> None:
    """Forty tokens are computed again one a step: that is no standing still."""
    request = Request(0, 0, 50, 50)
    request.reuse(40)
    request.forget()
    looks, said = reach(request), []
    for at in range(48):
        request.reuse(at)
        said.append(looks.stands_still())
    assert not any(said)
    assert looks.steps == 3, "nothing is left to compute again"


@pytest.mark.parametrize(("every", "ends"), [(1, None), (3, None), (4, 15), (6, 9), (5000, 6)])
def test_a_token_from_one_look_to_the_next_is_progress(every: int, ends: int | None) -> None:
    """There are three steps between them: whoever takes more may be ended, whoever never gets on is by six of them."""
    request = Request(0, 0, 9000, 9000)
    looks, said = reach(request), []
    for step in range(1, 60):
        request.reuse(1 + step // every)
        said.append(looks.stands_still())
    assert (said.index(True) + 1 if any(said) else None) == ends


class Slow(Honest):
    """Waits a little before each batch, in many short sleeps."""

    def plan(self, queue: Any, memory: Any, now: int) -> Any:
        return super().plan(queue, memory, now) if queue.running or now % 1000 == 999 else Wait(now + 1)


def test_many_short_waits_are_no_standing_still() -> None:
    assert run([(200 * at, 20, 6) for at in range(200)], Slow())["completed"] == 200
