"""The sglang policy against decisions recorded from the engine itself, step by step, and wrong rules that they catch.

The recordings stand in tests/golden/sglang. What one consists of is said in `simulator.conformance`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from worlds import play

from simulator.conformance import MODES, Mode, Outcome, Recording, check, compare, conformance, recordings
from simulator.conformance.sglang import sglang_case
from simulator.memory import Memory
from simulator.memory.base import Chunks
from simulator.memory.radix import Radix
from simulator.memory.tree import runs_of
from simulator.policies import Sglang
from simulator.policies.sglang import adder, orders, retraction, rule
from simulator.policies.sglang.adder import PrefillAdder, Verdict
from simulator.policies.sglang.ratio import NewTokenRatio
from simulator.request import Request
from simulator.step import Queue, Step

GOLDEN = Path(__file__).parents[1] / "golden" / "sglang"
RECORDINGS = {recording.name: recording for recording in recordings(GOLDEN)}
STEPS = {"s1_prefill_first": 11, "s2_chunked_prefill_first": 17, "s3_mixed_chunk": 12, "s4_retract": 166,
         "s5_lpm_shared_prefix": 10, "s7_ratio_admission": 106, "s8_ignore_eos_no_radix": 67}
UNRECORDED = {"s5_lpm_shared_prefix": ("kv_in_use", "kv_cached_evictable")}
"""An idle turn of the loop notes no memory."""


def test_all_recordings_are_here() -> None:
    assert list(RECORDINGS) == list(STEPS)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_every_field_of_every_step_is_the_engines(name: str, mode: Mode) -> None:
    outcome = compare(RECORDINGS[name], sglang_case, mode)
    assert outcome == Outcome(mode, STEPS[name], UNRECORDED.get(name, ()), None)


def test_by_the_engines_name() -> None:
    assert [verdict.identical for verdict in conformance("sglang", GOLDEN)] == [True] * len(STEPS)


@pytest.mark.parametrize("name", [name for name in STEPS if "prefix" not in name])
def test_a_replayed_recording_keeps_every_invariant(name: str) -> None:
    case = sglang_case(RECORDINGS[name])
    rows = [(request.arrival, request.prompt, output, request.max_tokens)
            for request, output in zip(case.requests, case.outputs, strict=True)]
    play(rows, case.policy, memory=case.memory, cost=case.cost, exact=True)


Patch = Callable[[pytest.MonkeyPatch], None]


class DecodeBesidePrefill(Sglang):
    """Whoever decodes takes part in every prefill batch."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = super().plan(queue, memory, now)
        if step is not None and not step.decodes and queue.decoding.size:
            step.decodes = memory.take(queue.decoding, ())
        return step


class FullIsFull(Sglang):
    """The word that the batch is full outlives the batch it was said of."""

    def _batch(self, *args: Any) -> Step:
        step = super()._batch(*args)
        self._reopens = False
        return step


class NeverResets(Sglang):
    """Idling leaves the ratio as it is."""

    def idle(self, queue: Queue, memory: Memory, now: int) -> None:
        self._catch_up(queue)


class DecaysInPrefills(Sglang):
    """Every step makes the ratio smaller."""

    def _batch(self, *args: Any) -> Step:
        self.ratio.decay(1)
        return super()._batch(*args)


def victims_inverted(patch: pytest.MonkeyPatch) -> None:
    """The most generated go first, then the shortest prompt."""
    right = retraction.victims
    patch.setattr(retraction, "victims", lambda queue: right(queue)[::-1])


def retracted_to_the_front(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retraction, "send_back", lambda request, queue, memory, step:
                  step.drop(queue.preempt(request, memory)))


def ratio_charged_at_once(patch: pytest.MonkeyPatch) -> None:
    """A new request is discounted in the very pass that lets it in."""
    class Adder(PrefillAdder):
        def __init__(self, queue: Queue, memory: Memory, ratio: float, *rest: Any, **knobs: Any) -> None:
            super().__init__(queue, memory, ratio, *rest, **knobs)
            self.ratio = ratio

        def _charged(self, request: Request, tokens: int) -> float:
            return super()._charged(request, tokens) * self.ratio

        def _refuse(self, request: Request) -> Verdict | None:
            new = (request.max_tokens - request.generated) * self.ratio
            return "no token" if request.lacking + new + self._page >= self.total_left else None

    patch.setattr(rule, "PrefillAdder", Adder)


def discounted_where_the_end_is_known(patch: pytest.MonkeyPatch) -> None:
    """The ratio holds for those, too, who ignore the end of a sequence."""
    right = PrefillAdder.__init__

    def start(self: PrefillAdder, queue: Queue, memory: Memory, ratio: float, *rest: Any, **knobs: Any) -> None:
        right(self, queue, memory, 0.7, *rest, **knobs)

    patch.setattr(PrefillAdder, "__init__", start)


def completions_not_foreseen(patch: pytest.MonkeyPatch) -> None:
    right = PrefillAdder.__init__
    patch.setattr(PrefillAdder, "__init__",
                  lambda self, *args, **knobs: right(self, *args, **knobs | {"foreseen": False}))


def chunks_beside_the_decodes(patch: pytest.MonkeyPatch) -> None:
    """Decodes that ride along cost no budget."""
    right = PrefillAdder.__init__
    patch.setattr(PrefillAdder, "__init__", lambda self, *args, **knobs: right(self, *args, **knobs | {"mixed": 0}))


def prompts_behind_the_decodes(patch: pytest.MonkeyPatch) -> None:
    """In a mixed batch the prompts come last."""
    patch.setattr(Queue, "lead", lambda self, requests: list(requests))


def in_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    """The longest match is not looked for."""
    patch.setitem(orders.ORDERS, "lpm", orders.first_come)


def one_token_less_is_found(patch: pytest.MonkeyPatch) -> None:
    """The tree is asked for one token less than the engine asks it for."""
    patch.setattr(Radix, "_find", lambda self, request: self._tree.walk(runs_of(request), request.known - 2))


def half_the_output(patch: pytest.MonkeyPatch) -> None:
    """Only half of what a request may generate counts."""
    patch.setattr(adder, "CLIP", 30)


def evicts_all_it_needs(patch: pytest.MonkeyPatch) -> None:
    """A step that lacks a block evicts as much as it takes in all."""
    def evict(self: Radix, blocks: int) -> None:
        if blocks > self._empty:
            self._empty += self._tree.evict(blocks)

    patch.setattr(Radix, "evict", evict)


def the_end_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    """What a request has generated never enters the tree."""
    right = Radix.release
    patch.setattr(Radix, "release", lambda self, request, **how: right(self, request, **how | {"returns": True}))


def the_prompt_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    """A prompt enters the tree only with its answer."""
    def computed(self: Radix, chunks: Chunks) -> None:
        """Nothing."""

    patch.setattr(Radix, "computed", computed)


def never_decays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NewTokenRatio, "after", lambda self, steps: self.value)


def no_jump(patch: pytest.MonkeyPatch) -> None:
    """The ratio after a retraction is the usual one."""
    patch.setattr(rule, "after_a_retraction", lambda kept: 0.7)


WRONG: dict[type[Sglang] | Patch, tuple[str, str]] = {
    victims_inverted: ("s4_retract", "retracted"),
    retracted_to_the_front: ("s4_retract", "waiting"),
    ratio_charged_at_once: ("s4_retract", "prefill"),
    DecodeBesidePrefill: ("s1_prefill_first", "mode"),
    FullIsFull: ("s4_retract", "mode"),
    NeverResets: ("s5_lpm_shared_prefix", "new_token_ratio"),
    DecaysInPrefills: ("s1_prefill_first", "new_token_ratio"),
    discounted_where_the_end_is_known: ("s8_ignore_eos_no_radix", "mode"),
    completions_not_foreseen: ("s8_ignore_eos_no_radix", "prefill"),
    chunks_beside_the_decodes: ("s3_mixed_chunk", "prefill"),
    prompts_behind_the_decodes: ("s3_mixed_chunk", "decode"),
    in_order_of_arrival: ("s5_lpm_shared_prefix", "prefill"),
    one_token_less_is_found: ("s5_lpm_shared_prefix", "prefill"),
    half_the_output: ("s7_ratio_admission", "prefill"),
    evicts_all_it_needs: ("s4_retract", "kv_cached_evictable"),
    the_end_is_not_kept: ("s1_prefill_first", "kv_cached_evictable"),
    the_prompt_is_not_kept: ("s4_retract", "kv_cached_evictable"),
    never_decays: ("s1_prefill_first", "new_token_ratio"),
    no_jump: ("s4_retract", "new_token_ratio"),
}
"""Each wrong rule, a recording that catches it, and a field of the first step that differs.

No recording tells whether lpm lets a request wait for another one's prompt: the order is the same without. A tiny world
does, in test_sglang.
"""


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[Sglang] | Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    name, field = WRONG[wrong]
    kind = wrong if isinstance(wrong, type) else Sglang
    if not isinstance(wrong, type):
        wrong(monkeypatch)
    difference = compare(RECORDINGS[name], partial(sglang_case, policy=kind), "exact").difference
    assert difference is not None
    assert field in difference.fields


def recorded(tmp_path: Path, options: dict[str, Any], requests: list[dict[str, Any]]) -> Recording:
    """A recording with an empty trace."""
    (tmp_path / "x.opts.json").write_text(json.dumps(options))
    (tmp_path / "x.requests.jsonl").write_text("\n".join(map(json.dumps, requests)))
    (tmp_path / "x.trace.jsonl").write_text("")
    [recording] = recordings(tmp_path)
    return recording


@pytest.mark.parametrize(("options", "requests", "said"), [
    ({"max_totl_tokens": 5}, [], r"did you mean 'max_total_tokens'"),
    ({"schedule_policy": "lpn"}, [], r"x.opts.json: sglang: schedule_policy must be one of fcfs, lpm"),
    ({"max_total_tokens": 0}, [], r"max_total_tokens must be a whole number of at least 2, not 0"),
    ({}, [{"id": "a", "max_tokens": 1}], r"line 1: prompt_len must be a whole number of at least 1, and is missing"),
    ({}, [{"id": "a", "prompt": [], "max_tokens": 1}], r"prompt must be a list of token ids"),
    ({}, [{"id": "a", "prompt": [1], "prompt_len": 1, "max_tokens": 1}], r"and then without prompt_len"),
    ({}, [{"id": 5, "prompt_len": 1, "max_tokens": 1}], r"id must be a word, not 5"),
    ({}, [{"id": "a", "prompt_len": 1, "max_tokens": 1}] * 2, r"line 2: id 'a' is also in line 1"),
    ({}, [{"id": "a", "prompt_len": 1, "max_tokens": 1}, {"id": "b", "prompt_len": 1, "max_tokens": 1,
                                                          "ignore_eos": True}], r"for all requests or for none"),
])
def test_what_cannot_be_read_is_refused(tmp_path: Path, options: dict[str, Any], requests: list[dict[str, Any]],
                                        said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        check(recorded(tmp_path, options, requests), "sglang")
    assert "\n" not in str(caught.value)


def test_a_declared_output_is_clipped_on_arrival(tmp_path: Path) -> None:
    row = {"id": "a", "prompt_len": 10, "max_tokens": 90}
    [clipped] = sglang_case(recorded(tmp_path, {"max_total_tokens": 50}, [row])).requests
    assert clipped.max_tokens == 50 - 10 - 1 - 1
