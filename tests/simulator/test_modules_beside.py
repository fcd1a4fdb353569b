"""Modules beside a policy file, held: one that is edited, vanishes or comes later is told, and none runs in silence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from written import digest, write

import simulator as sim
from simulator.errors import FileChanged, InputError
from simulator.policies.loading import load_policy
from simulator.scenario import Scenario
from simulator.scenarios import read_scenario, record
from simulator.scenarios.held import held, unchanged
from simulator.setup import prepare
from simulator.studies.campaign.kept import identity
from simulator.studies.campaign.running import campaign
from simulator.studies.regression.causes import differences
from simulator.studies.regression.side import Side

POLICY = """
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from simulator.policies import Vllm
{imports}
class Mine(Vllm):
    pass
"""
LAZY = """
from simulator.policies import Vllm
class Mine(Vllm):
    def resolve(self, deployment):
        from {module} import CAP
        return super().resolve(deployment)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in ("h", "late", "other"):    # each test brings its own
        sys.modules.pop(name, None)


def asked(imports: str = "try:\n    from h import CAP\nexcept ImportError:\n    CAP = 8") -> Scenario:
    return Scenario(policy=write("p.py", POLICY.format(imports=imports)) + ":Mine", num_prompts=2)


def gone() -> None:
    Path("h.py").unlink()


def shadowed() -> None:
    write("h/__init__.py", "CAP = 3\n")


def edited() -> None:
    write("h.py", "CAP = 33\n")


CASES = [(gone, "h.py", "was there when", "and is not here now"),
         (shadowed, "h/__init__.py", "was not there when", "take it away"),
         (edited, "h.py", "has changed since", "restore it")]


@pytest.mark.parametrize(("change", "name", "how", "next_move"), CASES)
def test_a_result_is_not_run_again_with_other_modules(change: Callable[[], None], name: str, how: str,
                                                      next_move: str) -> None:
    write("h.py", "CAP = 2\n")
    Path("r.json").write_text(sim.run(asked()).to_json())
    kept = read_scenario("r.json")
    assert set(kept.files) == {"p.py", "h.py"}
    assert kept.scenario().policy == "p.py:Mine"
    change()
    with pytest.raises(InputError) as caught:
        kept.scenario()
    told = str(caught.value)
    assert told.startswith(f"r.json: {name} {how} this result was written")
    assert next_move in told
    assert told.endswith("or give --policy p.py:Mine to take it as it is")
    assert kept.scenario(policy="static").policy == "static"    # which imports none of them


def test_a_module_that_comes_later_is_told_to_whoever_ran_without_it() -> None:
    Path("r.json").write_text(sim.run(asked()).to_json())
    write("h.py", "CAP = 3\n")
    with pytest.raises(InputError, match=r"^r\.json: h\.py was not there when this result was written"):
        read_scenario("r.json").scenario()
    with pytest.raises(FileChanged, match=r"^h\.py was not there when the policy that imports it was first read"):
        sim.run(asked())    # what ran here ran without
    Path("h.py").unlink()
    assert dict(sim.run(asked()).setup.files) == {"p.py": digest("p.py")}


@pytest.mark.parametrize(("change", "name", "how"), [each[:3] for each in CASES])
def test_a_scenario_that_holds_its_modules_runs_with_no_others(change: Callable[[], None], name: str, how: str) -> None:
    write("h.py", "CAP = 2\n")
    holds = held(asked())
    before = identity(holds)
    change()
    assert identity(holds) == before    # it stands for what is held
    with pytest.raises(FileChanged) as caught:
        prepare(holds)
    assert str(caught.value).startswith(f"{name} {how}")


def finished(scenario: Scenario, change: Callable[[], None]) -> int:
    prepare(scenario)
    if scenario.seed == 1:
        change()
    return scenario.seed


@pytest.mark.parametrize(("change", "name"), [each[:2] for each in CASES])
@pytest.mark.parametrize("seeds", [(0, 1, 2), (1, 2)])
def test_a_campaign_ends_with_the_name_of_a_module_that_is_another(change: Callable[[], None], name: str,
                                                                   seeds: tuple[int, ...]) -> None:
    write("h.py", "CAP = 2\n")
    base = held(asked())
    points = {str(seed): base.but(seed=seed) for seed in seeds}
    with pytest.raises(FileChanged) as caught:
        campaign(points, partial(finished, change=change))
    assert str(caught.value).startswith(f"{name} ")


def test_a_module_that_is_gone_before_the_first_point_runs_ends_a_campaign_too() -> None:
    write("h.py", "CAP = 2\n")
    base = held(asked())
    gone()
    with pytest.raises(FileChanged, match=r"^h\.py was there"):
        campaign({"it": base.but(seed=1)}, partial(finished, change=edited))


def test_a_module_that_is_imported_late_belongs_to_the_process_from_the_start() -> None:
    write("late.py", "CAP = 2\n")
    name = write("p.py", LAZY.format(module="late")) + ":Mine"
    asked = Scenario(policy=name, num_prompts=2)
    first = sim.run(asked)
    write("late.py", "CAP = 3\n")
    told = r"^late\.py has changed since it was first read, and Python runs a module once: .* in a new Python$"
    with pytest.raises(FileChanged, match=told):
        sim.run(asked)
    with pytest.raises(FileChanged, match=told):    # as where another process found it, and this one had run it before
        sim.run(Scenario(policy=name, num_prompts=2, files={each: digest(each) for each in ("p.py", "late.py")}))
    with Path("p.py").open("a") as file:
        file.write("# edited as well\n")
    with pytest.raises(FileChanged, match=told):
        load_policy(name)
    write("p.py", LAZY.format(module="late"))
    write("late.py", "CAP = 2\n")
    assert sim.run(asked).to_json() == first.to_json()


def test_a_record_tells_of_what_ran_also_where_that_is_gone() -> None:
    write("h.py", "CAP = 2\n")
    result = sim.run(asked())
    files = {each: digest(each) for each in ("p.py", "h.py")}
    gone()
    for each in (result, sim.run(asked().but(policy=load_policy("p.py:Mine")()))):
        assert json.loads(each.to_json())["scenario"]["files"] == files
    write("p.py", Path("p.py").read_text() + "# never run\n")
    files["p.py"] = digest("p.py")
    assert record(Scenario(policy="p.py:Mine"), files)["files"] == files


def test_a_policy_is_the_same_by_whichever_path_it_was_first_run() -> None:
    write("h.py", "CAP = 2\n")
    scenario = asked()
    away = Path("p.py").resolve()
    assert set(sim.run(scenario.but(policy=f"{away}:Mine")).setup.files) == {str(away), str(away.parent / "h.py")}
    assert set(sim.run(scenario).setup.files) == {"p.py", "h.py"}


def test_two_policies_of_a_folder_have_their_own_modules() -> None:
    write("h.py", "CAP = 2\n")
    write("other.py", "CAP = 2\n")
    one = held(asked("import h"))
    two = write("q.py", POLICY.format(imports="import other")) + ":Mine"
    assert set(held(one.but(policy=two)).files) == {"q.py", "other.py"}
    assert set(held(one.but(policy=two), one.files).files) == {"q.py", "other.py"}
    with unchanged(one.but(policy=two)):    # of which nothing is held yet
        pass


def test_what_its_reader_tells_of_is_left_to_it() -> None:
    write("h.py", "CAP = 2\n")
    Path("r.json").write_text(sim.run(asked()).to_json())
    for each in ("p.py", "h.py"):
        Path(each).unlink()
    with pytest.raises(InputError, match=r"^policy file p\.py: No such file or directory$"):
        load_policy(str(read_scenario("r.json").scenario().policy))


def test_a_check_tells_of_modules_that_only_one_side_imports() -> None:
    def told(was: dict[str, str], now: dict[str, str], policy: str = "p.py:Mine") -> list[str]:
        sides = [Side("simulated", {}, {}, {}, {}, {"policy": each, "files": files})
                 for each, files in (("p.py:Mine", was), (policy, now))]
        return [str(each) for each in differences(*sides) if each.what.endswith(".py")]

    own = {"p.py": "1"}
    assert told(own | {"h.py": "2"}, own) == ["h.py imported -> not there"]
    assert told(own, own | {"h.py": "2"}) == ["h.py not there -> imported"]
    assert told(own | {"h.py": "2"}, own | {"h.py": "3"}) == ["h.py changed"]
    assert told(own | {"h.py": "2"}, {"q.py": "1"}, "q.py:Mine") == []
