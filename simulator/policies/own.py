"""Policies of somebody's own, as opposed to the bundled ones: which they are, and what they say before anything runs.

The bundled ones are trusted, for the tests look at theirs.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cost_models import CostModelError
from simulator.deployment import Deployment
from simulator.errors import InputError, PolicyError
from simulator.memory.base import Lengths, Memory
from simulator.policies.base import Policy
from simulator.request import Request

BOUNDS = ("slots", "longest_prompt", "batches_in_flight", "max_outstanding")
"""Whole numbers of at least 1 that a policy states."""


def is_own(policy: object) -> bool:
    """Whether the class is somebody's own: not one of ours."""
    return not type(policy).__module__.startswith("simulator.")


def told(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where(error: BaseException, policy: object) -> str:
    """The last line of the policy's own code through which an error passed, as words to follow; nothing if none."""
    modules = {kind.__module__ for kind in type(policy).__mro__ if not kind.__module__.startswith("simulator.")}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_globals.get("__name__") in modules:
            return f" in {Path(frame.f_code.co_filename).name}, line {line}"
    return ""


@contextmanager
def answering(policy: Policy, verb: str) -> Iterator[None]:
    """Blame a policy of somebody's own for what its verb raises; it may raise InputError to refuse what it is asked."""
    try:
        yield
    except (InputError, PolicyError, CostModelError):
        raise
    except Exception as error:
        if not is_own(policy):
            raise
        raise PolicyError(f"{policy.name}: its {verb} raised {told(error)}{where(error, policy)}") from error


def resolved(policy: Policy, deployment: Deployment) -> Policy:
    """The policy with every knob filled in, of which every bound is one."""
    with answering(policy, "resolve"):
        found = policy.resolve(deployment)
    if not isinstance(found, Policy):
        raise PolicyError(f"{policy.name}: resolve must return a policy, not {found!r}")
    for name in BOUNDS:
        with answering(found, name):
            value = getattr(found, name)
        if type(value) is not int or value < 1:
            raise PolicyError(f"{policy.name}: {name} must be a whole number of at least 1, not {value!r}")
    return found


def memory_of(policy: Policy, deployment: Deployment, outputs: Lengths) -> Memory:
    """The policy's KV cache, empty."""
    with answering(policy, "memory"):
        memory = policy.memory(deployment, outputs)
    if not isinstance(memory, Memory):
        raise PolicyError(f"{policy.name}: memory must return a Memory such as Paged(blocks, 16), not {memory!r}")
    for name, least in (("capacity", 0), ("block_size", 1)):
        value = getattr(memory, name)
        if type(value) is not int or value < least:
            raise PolicyError(f"{policy.name}: the {name} of its memory must be a whole number of at least {least}, "
                              f"not {value!r}")
    return memory


def room_of(policy: Policy, prompt: Lengths, deployment: Deployment) -> Lengths | None:
    """Most output tokens that the engine lets each of these prompts have; None: as many as the model allows."""
    with answering(policy, "room"):
        room = policy.room(prompt, deployment)
    fits = isinstance(room, np.ndarray) and room.dtype.kind in "iu" and room.shape == prompt.shape
    if room is not None and not fits:
        raise PolicyError(f"{policy.name}: room must return None or whole numbers, one for each prompt, not {room!r}")
    return room



def named(request: object) -> str:
    """A request in words; whatever else stands in its place as it is."""
    return f"request {request.index}" if isinstance(request, Request) else repr(request)
