"""Batch size: where the number of slots of static batching comes from, where nobody said it. It changes nothing."""

from __future__ import annotations

import numpy as np

from simulator.counting import counted
from simulator.memory.base import UNLIMITED
from simulator.memory.contiguous import Reserve, reservation
from simulator.policies.static import StaticBatching
from simulator.policies.whole_batch import USUAL
from simulator.setup import Setup

SHARE = 99
"""Percentile of the reservations that is set beside the longest."""


def sized_by_longest(setup: Setup) -> bool:
    """Whether the slots are as many as the memory holds of the longest reservation, and nobody set them."""
    return any(" // " in told for told in size_told(setup))


def size_told(setup: Setup) -> list[str]:
    """How the memory and the longest reservation come to the slots, in a line; none where somebody set them."""
    asked, policy, pool = setup.scenario.policy, setup.policy, setup.deployment.kv_capacity_tokens
    if not isinstance(asked, StaticBatching) or asked.max_batch_size or asked.reserve == "pow2":
        return []    # powers of two are bounded, not counted, when the size is chosen
    accepted = np.flatnonzero(setup.verdict == 0)
    if pool >= UNLIMITED or not len(accepted):
        return []
    lengths = (each[accepted] for each in (setup.prompt, setup.output, setup.max_tokens))
    sizes = reservation(asked.reserve, setup.deployment.max_model_len, *lengths)
    longest, often = int(sizes.max()), int(np.percentile(sizes, SHARE, method="higher"))
    whose, fit = _whose(setup, asked.reserve, int(accepted[sizes.argmax()])), pool // longest
    told = f"{asked.name}: {counted(policy.slots, 'slot')}"
    if fit >= USUAL:
        return [f"{told}, the most by default; the longest reservation, {whose}, leaves room for {fit:,}"]
    usual = f"; the p{SHARE} of the reservations, {often:,} tokens, would give {min(USUAL, pool // often):,}"
    return [f"{told} = {pool:,} // {longest:,} tokens, the longest reservation: {whose}{usual * (often < longest)}"]


def _whose(setup: Setup, reserve: Reserve, row: int) -> str:
    """The longest reservation in words: whose it is, and what it is made of."""
    if reserve == "model":
        return "the model's own length"
    tokens = f"declared {setup.max_tokens[row]:,}" if reserve == "declared" else f"output {setup.output[row]:,}"
    return f"request {row:,} (prompt {setup.prompt[row]:,} + {tokens})"
