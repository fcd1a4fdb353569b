"""The gate: which rows of a trace can never be served. It stands before any policy and knows no time.

Real engines refuse such requests at the door, or stall on them for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.deployment import Deployment
from simulator.frozen import Kept
from simulator.policies.base import Policy
from simulator.policies.own import memory_of, room_of

Ints = NDArray[np.int64]

VERDICTS = ("accepted", "longer than max_model_len", "prompt fills the engine's max_model_len",
            "never fits the KV pool", "prompt longer than the engine takes", "left out")
"""What the gate says of a request, by its code."""
TOO_LONG, FILLS_ENGINE, NEVER_FITS, LONG_PROMPT, ABSENT = 1, 2, 3, 4, 5
REFUSED = "refused: the engine had as many requests as its front end takes (429)"
"""What a request is told that comes at the wrong moment, though it could be served."""
SHED = "shed: every replica had as many requests as it takes (429)"
"""What the router tells one that comes at such a moment."""
TIMED_OUT = "timed out: its client had waited long enough, and had no tries left"
"""What is said of a request that its client gives up."""
SKIPPED = "skipped: its conversation had ended with a turn that was not answered"
"""What is said of a later turn that was never sent."""


@dataclass(frozen=True, eq=False)
class Rows(Kept):
    """A trace's requests by index: tokens after every cut and clip, and what the gate says of each.

    Attributes:
        prompt, output, max_tokens: Tokens; `max_tokens` is what the client declares.
        verdict: Code into VERDICTS.
        footprint: Tokens of memory that each holds when it holds most; 0 until the memory is known.
        clipped: Outputs that the engine's own max_model_len cuts short.
    """

    prompt: Ints
    output: Ints
    max_tokens: Ints
    verdict: NDArray[np.int8]
    footprint: Ints
    clipped: int = 0

    def longest(self) -> tuple[int, int, int]:
        """The longest declared request, true request and output among the accepted, in tokens; 1 if there are none."""
        accepted = self.verdict == 0
        return tuple(int(column[accepted].max(initial=1)) for column in    # type: ignore[return-value]
                     (self.prompt + self.max_tokens, self.prompt + self.output, self.output))

    def reject(self, code: int, which: NDArray[np.bool_]) -> Rows:
        """The same rows, with those accepted so far that `which` names rejected for the reason of this code."""
        return replace(self, verdict=np.where((self.verdict == 0) & which, code, self.verdict))


def rows_for_model(prompt: Ints, output: Ints, max_tokens: Ints, max_model_len: int) -> Rows:
    """The rows as they come, those longer than the model allows rejected. Exactly `max_model_len` tokens are served."""
    declared = np.maximum(np.minimum(max_tokens, max_model_len - prompt), 1)
    rows = Rows(prompt, output, declared, np.zeros(len(prompt), np.int8), np.zeros_like(prompt))
    return rows.reject(TOO_LONG, prompt + output > max_model_len)


def rows_for_engine(rows: Rows, policy: Policy, deployment: Deployment) -> Rows:
    """The rows after what the engine refuses and clips by lengths of its own, and what its memory can never hold."""
    room = room_of(policy, rows.prompt, deployment)
    if room is not None:
        rows = _within(rows, room)
    rows = rows.reject(LONG_PROMPT, rows.prompt > policy.longest_prompt)
    memory = memory_of(policy, deployment, rows.output)
    blocks = memory.footprint(rows.prompt, rows.output, rows.max_tokens)
    return replace(rows.reject(NEVER_FITS, blocks > memory.longest_run()), footprint=blocks * memory.block_size)


def _within(rows: Rows, room: Ints) -> Rows:
    rows = rows.reject(FILLS_ENGINE, room < 1)
    room = np.maximum(room, 1)
    clipped = int(((rows.output > room) & (rows.verdict == 0)).sum())
    return replace(rows, output=np.minimum(rows.output, room), max_tokens=np.minimum(rows.max_tokens, room),
                   clipped=clipped)
