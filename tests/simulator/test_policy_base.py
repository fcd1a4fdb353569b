"""What all policies have in common: what they promise, what they are made from, and how they are named."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from simulator.deployment import Deployment
from simulator.errors import FileChanged, InputError
from simulator.memory import Paged
from simulator.policies import DynamicBatching, Policy, Vllm
from simulator.policies.loading import load_policy
from simulator.policies.making import make_policies, make_policy, reference_of


class Planning(Vllm):
    def plan(self, *_):
        return None


class Keeping(Vllm):
    def leaving(self, *_):
        return []


class Promising(Planning):
    steady: ClassVar[bool] = True


class Renamed(Vllm):
    pass


def test_a_new_rule_inherits_no_promise() -> None:
    kinds = (Policy, Planning, Keeping, Promising, Vllm, Renamed)
    assert [kind.is_steady() for kind in kinds] == [False, False, False, True, True, True]


def test_the_memory_of_a_policy_that_names_none() -> None:
    memory = Policy().memory(Deployment(kv_capacity_tokens=175), None)    # type: ignore[arg-type]
    assert isinstance(memory, Paged)
    assert (memory.capacity, memory.block_size) == (10, 16)


def test_a_listed_number_stays_within_64_bits() -> None:
    with pytest.raises(InputError, match="dynamic: preferred_batch_size must list whole numbers"):
        DynamicBatching(preferred_batch_size=(1, (1 << 60) + 1))


def test_a_setting_goes_to_all_who_have_the_knob_or_to_whom_it_names() -> None:
    made = make_policies(["static", "dynamic", "vllm", Renamed()],
                         {"max_batch_size": 4, "vllm.max_num_seqs": 7, "dynamic.placement": "buddy"})
    assert [policy.slots for policy in made[:3]] == [4, 4, 7]
    assert (made[0].placement, made[1].placement) == ("first-fit", "buddy")    # type: ignore[attr-defined]
    assert type(made[3]) is Renamed


@pytest.mark.parametrize(("setting", "told"), [
    (".max_num_seqs", "names no policy before its dot"), ("max_batch", "max_batch_size"), ("vlm.block_size", "vllm")])
def test_a_setting_that_nobody_has_is_refused(setting: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make_policies(["static", "vllm"], {setting: 1})


def test_what_names_a_policy_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from simulator.policies import Vllm\n\n\nclass Mine(Vllm):\n    pass\n")
    assert reference_of(Vllm()) == "vllm"
    assert reference_of(make_policy(f"{file}:Mine")) == f"{file}:Mine"
    assert reference_of(Renamed()) is None


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize(("hint", "fine"), [("int", False), ("ClassVar", True), ("ClassVar[int]", True)])
def test_a_knob_in_a_file_needs_a_dataclass(hint: str, fine: bool, first: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{first}from typing import ClassVar\n\nfrom simulator.policies import Policy\n\n\n"
                    f"class Mine(Policy):\n    patience: {hint} = 3\n\n"
                    "    def plan(self, queue, memory, now):\n        return None\n")
    if fine:
        assert reference_of(make_policy(f"{file}:Mine")) == f"{file}:Mine"
    else:
        with pytest.raises(InputError, match="put @dataclass above it"):
            make_policy(f"{file}:Mine")


def test_other_content_than_the_digest_says_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise SystemExit('run')\n")
    with pytest.raises(FileChanged, match=r"mine.py has changed since it was first read"):
        load_policy(f"{file}:Mine", "0" * 16)


def test_a_file_that_was_stopped_half_way_is_run_again_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    pass\n\n\nraise KeyboardInterrupt\n")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            load_policy(f"{file}:Mine")
