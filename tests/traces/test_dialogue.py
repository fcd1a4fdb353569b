"""Drawn conversations: they follow what the spec says of them, and the bundled ones are like the published trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traces import Trace, TraceError, generate, load
from traces.dialogue import Dialogue
from traces.spec import Spec, spec_of
from traces.standins import bundled

NAME = "mooncake-conversation-turns"
PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "traces" / "mooncake-fast25" / "conversation_trace.jsonl"
SECOND = 10 ** 9


def flat(value: float) -> list[float]:
    return [value] * 101


def spec(turns: dict[str, Any], **changes: Any) -> Spec:
    law = {"kind": "fixed", "tokens": 100}
    return spec_of({"name": "talks", "prompt": law, "output": {"kind": "fixed", "tokens": 20},
                    "arrivals": {"kind": "constant", "rate": 1}, "turns": turns, **changes}, "spec")


TALKS = {"sizes": {1: 40, 3: 10}, "gap_s": flat(5), "message": {2: flat(30)}, "longest": 1000, "block": 16}


def test_a_later_prompt_is_the_prompt_before_its_answer_and_a_message() -> None:
    trace = generate(spec(TALKS))
    assert len(trace) == 70
    assert trace.parent is not None
    later = trace.parent >= 0
    assert later.sum() == 20
    before = trace.parent[later]
    assert (trace.prompt[later] == trace.prompt[before] + 20 + 30).all()
    assert (trace.arrival[later] - trace.arrival[before] == 5 * SECOND).all()
    assert trace.hash_ids is not None
    for row, parent in enumerate(trace.parent.tolist()):
        ids = trace.hash_ids[row]
        assert len(ids) == -(-int(trace.prompt[row]) // 16)
        if parent >= 0:
            full = int(trace.prompt[parent]) // 16
            assert list(ids[:full]) == list(trace.hash_ids[parent][:full])
            assert not set(ids[full:]) & set(trace.hash_ids[parent])


def test_a_turn_that_is_cut_keeps_the_beginning_and_the_length() -> None:
    cut = TALKS | {"cut": {0: 1.0}, "kept": flat(32), "length": flat(90), "common": 1}
    trace = generate(spec(cut))
    assert trace.parent is not None
    assert trace.hash_ids is not None
    rows = np.flatnonzero(trace.parent >= 0)
    assert set(trace.prompt[rows].tolist()) == {90, 81}
    for row in rows.tolist():
        mine, theirs = list(trace.hash_ids[row]), list(trace.hash_ids[int(trace.parent[row])])
        assert (mine[:2], mine[0]) == (theirs[:2], 0)
        assert not set(mine[2:]) & set(theirs[2:])


def test_short_first_prompts_stay_alone() -> None:
    law = {"kind": "uniform", "least": 1, "most": 200}
    trace = generate(spec(TALKS | {"alone_below": 100}, prompt=law))
    assert trace.parent is not None
    assert trace.prompt[trace.parent[trace.parent >= 0]].min() >= 100


def test_conversations_end_with_the_trace_where_they_can() -> None:
    trace = generate(spec(TALKS | {"gap_s": flat(20)}))
    assert trace.span_s == 49
    tight = generate(spec(TALKS | {"gap_s": flat(400)}))
    assert 49 <= tight.span_s < 60, "two gaps of 400 s do not fit and are sped up"


def test_the_same_seed_draws_the_same_and_nothing_else_changes_the_others() -> None:
    assert load(NAME, seed=3).digest == load(NAME, seed=3).digest != load(NAME, seed=4).digest


@pytest.mark.parametrize(("wrong", "said"), [
    ({"sizes": {}}, "sizes must map whole numbers"), ({"sizes": {0: 4}}, "a key of sizes"),
    ({"sizes": {1: 0}}, "sizes of 1 turns"), ({"gap_s": [1, 2]}, "gap_s must list 101 numbers"),
    ({"gap_s": [*flat(2)[:100], 1]}, "gap_s must not fall"), ({"message": 4}, "message must map"),
    ({"message": {2: flat(-2000)}}, "message of 2 turns"),
    ({"cut": {5: 1.5}}, "cut must be a number of at least 0 and at most 1, not 1.5"),
    ({"cut": {5: 0.5}}, "kept must list 101 numbers"), ({"block": 0}, "block must be"), ({"tick": 3}, "unknown key"),
])
def test_what_does_not_fit_is_one_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(TraceError, match=said) as refusal:
        spec(TALKS | wrong)
    assert "\n" not in str(refusal.value)


def test_turns_rows_and_arrivals_must_agree() -> None:
    with pytest.raises(TraceError, match="rows is 9, but the turns come to 70"):
        spec(TALKS, rows=9)
    with pytest.raises(TraceError, match="there are 50 conversations, but the counts of the arrivals come to 3"):
        spec(TALKS, arrivals={"kind": "windows", "counts": [1, 2]})


def tree(trace: Trace) -> dict[str, Any]:
    """The conversations of a trace as its ids tell of them, as the notes of the spec say."""
    assert trace.hash_ids is not None
    assert trace.hash_block is not None
    seen: dict[int, int] = {}
    depth, parent = np.zeros(len(trace), np.int64), np.full(len(trace), -1)
    for row in range(len(trace)):
        ids = list(trace.hash_ids[row])
        found = next((at for at, one in enumerate(ids) if one not in seen), len(ids))
        depth[row] = found
        if found >= 2:
            parent[row] = seen[ids[found - 1]]
        seen |= dict.fromkeys(ids, row)
    root, later = np.arange(len(trace)), parent >= 0
    for row in np.flatnonzero(later).tolist():
        root[row] = root[parent[row]]
    sizes = np.bincount(root)
    return {"reused": np.minimum(depth * trace.hash_block, trace.prompt).sum() / trace.prompt.sum(),
            "later": later.mean(), "sizes": np.bincount(sizes[sizes > 0]),
            "gaps": np.percentile((trace.arrival[later] - trace.arrival[parent[later]]) / SECOND, [10, 50, 90]),
            "prompt": trace.prompt.mean(), "whole": (depth[later] >= trace.prompt[parent[later]] // 512).mean()}


def agree(drawn: dict[str, Any], reused: float, sizes: dict[int, int], gaps: list[float]) -> None:
    """The tolerances: 10% of the tokens reused, 5% of later turns, 8% of gaps, 10% of the conversations by turns."""
    rows = sum(turns * many for turns, many in sizes.items())
    assert drawn["reused"] == pytest.approx(reused, rel=0.1)
    assert drawn["later"] == pytest.approx(1 - sum(sizes.values()) / rows, rel=0.05)
    assert drawn["gaps"] == pytest.approx(gaps, rel=0.08)
    for turns in (1, 2, 3, 4):
        assert drawn["sizes"][turns] == pytest.approx(sizes[turns], rel=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bundled_conversations_are_as_the_spec_says(seed: int) -> None:
    facts = bundled(NAME).turns
    assert isinstance(facts, Dialogue)
    agree(tree(load(NAME, seed=seed)), facts.reused, dict(facts.sizes), [facts.gap_s[at] for at in (10, 50, 90)])


def test_the_bundled_conversations_are_like_the_published_ones() -> None:
    if not PUBLISHED.exists():
        pytest.skip("needs ../shared/traces")
    drawn, published = tree(load(NAME)), tree(load(PUBLISHED))
    sizes = {turns: int(many) for turns, many in enumerate(published["sizes"]) if many}
    assert sizes == bundled(NAME).turns.sizes    # type: ignore[union-attr]
    agree(drawn, published["reused"], sizes, list(published["gaps"]))
    assert drawn["prompt"] == pytest.approx(published["prompt"], rel=0.1)
    assert drawn["whole"] == pytest.approx(published["whole"], abs=0.03)
