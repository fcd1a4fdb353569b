"""What stays as it is: the frozen mapping, and all that a kept result holds, also once it is copied or unpickled."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.frozen import Frozen, frozen
from simulator.memory import Memory
from simulator.policies import POLICIES, Policy, StaticBatching, Vllm
from simulator.result import Result

ROWS = [(0, 4, 1), (0, 40, 3), (5, 4, 9), (60, 4, 2)]
COPIES = {"itself": lambda it: it, "copy": copy.copy, "deepcopy": copy.deepcopy,
          "pickle": lambda it: pickle.loads(pickle.dumps(it))}


@dataclasses.dataclass
class Listing(StaticBatching):
    """A policy with a knob that can be written into."""

    sizes: list[int] = dataclasses.field(default_factory=lambda: [1, 2])


def run(policy: Policy | str = "vllm", **options: Any) -> Result:
    trace = dataclasses.replace(trace_of(ROWS), tenant=("a", "b", "a", "b"))
    options = {"cost_model": Constant(10), "kv_capacity_tokens": 512, "max_tokens": "exact",
               "goodput": {"ttft": 5e-5}, "classes": {"a": {"ttft": 1e-5}}, **options}
    return sim.simulate(trace, policy, **options)


@pytest.fixture(autouse=True)
def _epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")


@pytest.fixture(params=COPIES)
def clone(request: pytest.FixtureRequest) -> Any:
    return COPIES[request.param]


# --- the mapping ----------------------------------------------------------------------------------------------------

def test_it_is_a_mapping_like_any_other(clone: Any) -> None:
    plain = {"a": 1, "b": {"c": (2, 3)}}
    kept = clone(Frozen(plain))
    assert type(kept) is Frozen
    assert kept == plain == dict(kept)
    assert (repr(kept), list(kept), kept.get("x"), len(kept), {**kept}) == (repr(plain), ["a", "b"], None, 2, plain)
    assert json.dumps(kept) == json.dumps(plain)
    assert isinstance(kept, Mapping)
    assert type(kept | {"a": 2}) is dict
    assert Frozen([("a", 1)]) == {"a": 1}


@pytest.mark.parametrize("write", [
    lambda it: it.__setitem__("a", 2), lambda it: it.__delitem__("a"), lambda it: it.update(a=2),
    lambda it: it.setdefault("z", 2), lambda it: it.pop("a"), lambda it: it.popitem(), lambda it: it.clear(),
    lambda it: it.__ior__({"a": 2}), lambda it: it["b"].update(c=9)])
def test_no_write_goes_through_and_each_names_the_next_move(clone: Any, write: Any) -> None:
    kept = clone(Frozen({"a": 1, "b": {"c": 2}}, "ask the owner"))
    with pytest.raises(TypeError, match=r"^\{.*\} cannot be changed: ask the owner$"):
        write(kept)
    assert kept == {"a": 1, "b": {"c": 2}}


def test_what_it_is_made_from_stays_the_callers_own() -> None:
    own = {"sizes": [1, 2], "inner": {"x": 1}, "names": {"y"}, "count": np.int64(3)}
    kept = Frozen(own)
    own["sizes"].append(3)
    own["inner"]["x"] = 2
    own["names"].add("z")
    assert kept == {"sizes": (1, 2), "inner": {"x": 1}, "names": {"y"}, "count": 3}
    assert type(kept["count"]) is int
    assert frozen(kept) is kept


def test_arrays_are_read_only_again_after_a_copy(clone: Any) -> None:
    assert not clone(Frozen({"a": np.arange(3)}))["a"].flags.writeable


# --- scenarios ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "given"), [
    ("knobs", {"max_num_seqs": 3}), ("goodput", {"ttft": 5.0}), ("prices", {"h100-80": 2.5}),
    ("scheduler_overhead", {"all": (1.0, 2.0)}), ("reading", {"columns": {"prompt": "p"}}), ("files", {"x": "y"})])
def test_a_mapping_of_a_scenario_says_how_to_have_another(clone: Any, name: str, given: dict[str, Any]) -> None:
    asked = clone(sim.Scenario(**{name: given}))
    with pytest.raises(TypeError, match=rf": scenario\.but\({name}=\{{\.\.\.\}}\) makes a scenario with other ones$"):
        getattr(asked, name).update(given)
    assert getattr(asked, name) == given
    assert asked == sim.Scenario(**{name: given})
    assert asked.but(**{name: {}}) != asked or name == "files"


def test_a_policy_object_is_a_copy_in_and_out(clone: Any) -> None:
    given = Listing(max_batch_size=2)
    asked = clone(sim.Scenario(policy=given))
    given.max_batch_size = 9
    given.sizes.append(9)
    asked.policy.max_batch_size = 8
    asked.policy.sizes.append(8)
    assert asked.policy == Listing(max_batch_size=2, sizes=[1, 2])
    assert asked == sim.Scenario(policy=Listing(max_batch_size=2))


def test_an_array_stays_the_callers_own_and_a_scenario_what_it_was(clone: Any) -> None:
    whole = np.arange(6)
    asked = clone(sim.Scenario(knobs={"sizes": whole, "part": whole[1:3], "deep": {"pair": [np.array([0.5, 1])]}}))
    whole *= 2
    assert asked.knobs == {"sizes": (0, 1, 2, 3, 4, 5), "part": (1, 2), "deep": {"pair": ((0.5, 1.0),)}}
    assert asked == sim.Scenario(knobs=asked.knobs)
    assert json.loads(json.dumps(asked.to_dict()["knobs"]))["part"] == [1, 2]


@dataclasses.dataclass
class Weighing(StaticBatching):
    """A policy with an array for a knob."""

    weights: Any = None


def test_an_array_of_a_policy_object_is_a_copy_in_and_out_and_told() -> None:
    weights = np.array([1.0, 2.0])
    asked = sim.Scenario(trace_of(ROWS), Weighing(weights=weights), cost_model=Constant(10))
    weights *= 9
    asked.policy.weights[0] = 7
    found = sim.run(asked)
    assert found.policy.weights.tolist() == [1, 2]
    assert "weights=[1.0, 2.0]" in found.summary()["policy_args"]
    assert found.asked["knobs"]["weights"] == [1, 2]


@dataclasses.dataclass(slots=True)
class Slotted(StaticBatching):
    """A policy whose own fields are slots, one of which is set by nobody."""

    extra: int = 3
    sizes: list[int] = dataclasses.field(default_factory=list)
    unset: int = dataclasses.field(init=False)


def test_slots_of_a_policy_object_are_copied_like_its_attributes(clone: Any) -> None:
    given = Slotted(max_batch_size=2)
    given.extra = np.int64(4)
    asked = clone(sim.Scenario(policy=given))
    given.sizes.append(1)
    asked.policy.sizes.append(2)
    assert (asked.policy.sizes, asked.policy.extra, type(asked.policy.extra)) == ([], 4, int)


def test_a_comparison_cannot_be_changed() -> None:
    found = sim.compare(trace_of(ROWS), cost_model=Constant(10))
    for kept in (found.ratios[0].baseline, found.ratios[0].continuous, found.results, found.equal_slots, found.ladders):
        with pytest.raises(TypeError, match="cannot be changed"):
            kept.clear()    # type: ignore[attr-defined]


# --- results --------------------------------------------------------------------------------------------------------

def holes(value: Any, path: str = "result", seen: set[int] | None = None) -> Iterator[str]:
    """Paths of what can be written into, among all that can be reached; tables and policies are the caller's own."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, str | bytes | int | float | type | Policy | Memory | Constant):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield from [path] if value.flags.writeable else []
    elif isinstance(value, list | set | dict) and not isinstance(value, Frozen):
        yield path
    elif isinstance(value, Frozen):
        for key, each in value.items():
            yield from holes(each, f"{path}[{key!r}]", seen)
    elif isinstance(value, tuple | frozenset):
        for at, each in enumerate(value):
            yield from holes(each, f"{path}[{at}]", seen)
    elif dataclasses.is_dataclass(value):
        assert type(value).__dataclass_params__.frozen, path
        for name, each in vars(value).items():
            if not name.startswith("_"):
                yield from holes(each, f"{path}.{name}", seen)


def touched(result: Result) -> Result:
    """The result, once everything was measured of it."""
    result.to_json(detailed=True)
    _ = result.record.steps, result.record.pauses, result.limits, result.requests, result.steps
    return result


@pytest.mark.parametrize("options", [{}, {"replicas": 2, "isolation": True, "error_band": 5}], ids=["one", "several"])
def test_nothing_that_a_result_holds_can_be_written_into(clone: Any, options: dict[str, Any]) -> None:
    result = touched(run(**options))
    told = result.to_json(detailed=True)
    again = clone(result)
    assert list(holes(again)) == []
    assert clone(again).to_json(detailed=True) == told


def test_the_search_for_holes_finds_them() -> None:
    assert list(holes(Frozen({"a": (np.arange(2),)}))) == []
    assert list(holes(([], {}, np.arange(2)))) == ["result[0]", "result[1]", "result[2]"]


def test_a_policy_of_a_result_can_be_written_into_and_tells_nobody(clone: Any) -> None:
    result = clone(run(Vllm(max_num_seqs=2)))
    told = result.to_json(detailed=True)
    for policy in (result.policy, result.setup.policy, result.scenario.policy):
        policy.max_num_seqs = 9
    assert [each.max_num_seqs for each in (result.policy, result.setup.policy, result.scenario.policy)] == [2, 2, 2]
    result.memory.capacity = 1
    assert result.to_json(detailed=True) == told


def test_a_ledger_says_that_a_copy_can_be_changed() -> None:
    with pytest.raises(TypeError, match=r"cannot be changed: dict\(\.\.\.\) makes a copy that can be$"):
        run().slot_ledger.parts["decode"] = 0


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_result_that_has_been_asked_can_still_be_sent_elsewhere(policy: str, replicas: int) -> None:
    result = run(policy, replicas=replicas)
    told = result.summary()
    assert pickle.loads(pickle.dumps(result)).summary() == copy.deepcopy(result).summary() == told
