"""Files behind files: lengths that a spec takes from a file, and modules that a policy file imports from its folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from written import digest, write

import simulator as sim
from simulator import traffic
from simulator.errors import FileChanged, InputError
from simulator.policies.beside import _imported as looked_into
from simulator.policies.beside import beside
from simulator.policies.loading import code_run
from simulator.scenario import Scenario
from simulator.scenarios import named, read_scenario
from simulator.scenarios.held import files_of
from simulator.setup import prepare
from simulator.studies.campaign.kept import identity
from traces import Trace

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = ("prompt: {kind: empirical, file: lengths/prompts.txt}\noutput: {kind: fixed, tokens: 4}\n"
        "arrivals: {kind: poisson, rate: 5}\nrows: 6\n")
POLICY = ("import sys, os\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
          "from {module} import CAP\nfrom dataclasses import replace\nfrom simulator.policies import Vllm\n"
          "class Mine(Vllm):\n    def resolve(self, deployment):\n"
          "        return replace(super().resolve(deployment), max_num_seqs=CAP)\n")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


# --- a spec and its lengths -----------------------------------------------------------------------------------------

def drawn() -> str:
    write("specs/lengths/prompts.txt", "10\n20\n")
    return "gen:" + write("specs/mine.yaml", SPEC)


@pytest.mark.parametrize("asked", [lambda name: {"trace": name}, lambda name: {"mix": {name: 1.0}, "num_prompts": 3}])
def test_a_result_tells_of_the_lengths_that_a_spec_reads(asked: Any) -> None:
    result = sim.run(Scenario(**asked(drawn())))
    names = ["specs/mine.yaml", "specs/lengths/prompts.txt"]
    assert dict(result.setup.files) == {name: digest(name) for name in names}
    Path("r.json").write_text(result.to_json())
    assert read_scenario("r.json").scenario().trace == result.scenario.trace
    write(names[1], "10\n21\n")
    with pytest.raises(InputError, match=r"^r\.json: specs/lengths/prompts\.txt has changed since this result was"):
        read_scenario("r.json").scenario()


def test_lengths_that_change_while_they_are_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(scenario: Scenario, read: Any = traffic.composed) -> Trace:
        found = read(scenario)
        write("specs/lengths/prompts.txt", "7\n")
        return found

    asked = Scenario(trace=drawn())
    monkeypatch.setattr(traffic, "composed", reads)
    with pytest.raises(FileChanged, match=r"prompts\.txt has changed since it was first read"):
        prepare(asked)


@pytest.mark.parametrize("text", ["prompt: [", "- 1", "", "prompt: {file: 3}", "prompt: {file: nowhere.txt}", None])
def test_a_spec_that_cannot_be_read_has_nothing_behind_it(text: str | None) -> None:
    if text is not None:
        write("s.yaml", text)
    assert set(files_of(Scenario(trace="gen:s.yaml"))) <= {"s.yaml"}


# --- a policy file and its modules ----------------------------------------------------------------------------------

def test_imports_are_followed_by_what_the_sources_say() -> None:
    write("own/p.py", "import helper\nimport pkg.deep.inner as x\nfrom pkg import *\nimport json, absent\n"
                      "from simulator import nothing\nfrom . import sideways\ndef f():\n    import lazily\n")
    for name, text in {"helper": "from pkg.other import A", "pkg/__init__": "from .more import B", "pkg/more": "",
                       "pkg/deep/inner": "from ..third import C\nfrom ....outside import D", "pkg/third": "",
                       "pkg/other": "import helper", "lazily": "", "sideways": "import p", "unasked": "", "json2": "",
                       "simulator": "import unasked"}.items():
        write(f"own/{name}.py", text)
    write("outside.py", "")
    known = ["helper", "lazily", "pkg/__init__", "pkg/deep/inner", "pkg/more", "pkg/other", "pkg/third", "sideways"]
    assert beside("own/p.py") == tuple(f"own/{name}.py" for name in known)
    assert beside(str(Path("own/p.py").resolve())) == tuple(str(Path(f"own/{name}.py").resolve()) for name in known)


def test_what_lies_above_the_folder_of_the_policy_is_not_beside_it() -> None:
    write("own/pkg/__init__.py", "from ..near import A\nfrom ...far import B\n")
    for name in ("own/near.py", "own/far.py", "far.py"):
        write(name, "")
    assert beside(write("own/p.py", "import pkg\n")) == ("own/near.py", "own/pkg/__init__.py")


@pytest.mark.parametrize("source", ["import (", "import helper\0", "# -*- coding: nonsense -*-\nimport helper",
                                    "(" * 500 + "import helper"])
def test_a_source_that_is_none_has_nothing_behind_it(source: str) -> None:
    write("helper.py", "")
    assert beside(write("p.py", source)) == ()
    assert beside("nowhere.py") == beside(".") == beside("p\0.py") == ()


def test_a_source_is_looked_into_without_a_word_and_only_where_it_is_a_file_of_some_size() -> None:
    write("helper.py", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert beside(write("p.py", "import helper\n'\\d'\n")) == ("helper.py",)
    assert beside(write("p.py", "import helper\n#" + " " * (4 << 20))) == ()
    os.mkfifo("pipe.py")
    assert beside("pipe.py") == ()


def test_of_a_package_of_which_all_is_taken_each_module_counts() -> None:
    for name in ("__init__", "b", "deep/__init__", "deep/inner", "bare/inner"):
        write(f"a/{name}.py", "__all__ = ['b']\n")
    write("a/data.txt", "")
    write("b/inner.py", "")
    assert beside(write("p.py", "from a import *\nfrom b import *\n")) == ("a/__init__.py", "a/b.py",
                                                                          "a/deep/__init__.py")
    write("p.py", "import a.deep\n")
    write("a/deep/__init__.py", "from .. import *\n")
    assert beside("p.py") == ("a/__init__.py", "a/b.py", "a/deep/__init__.py")


def test_of_very_many_modules_the_nearest_are_known_and_each_is_looked_into_once() -> None:
    many = range(300)
    write("big/__init__.py", "".join(f"from . import m{each}\n" for each in many))
    for each in many:
        write(f"big/m{each}.py", "import last\n")
    write("near.py", "")
    write("last.py", "")
    found = beside(write("p.py", "import big, near\n"))
    assert found == tuple(sorted(["big/__init__.py", "near.py", *(f"big/m{each}.py" for each in range(62))]))
    before = looked_into.cache_info().misses
    assert beside("p.py") == found
    assert looked_into.cache_info().misses == before


def test_so_many_bytes_of_sources_are_looked_into() -> None:
    for name, behind in (("one", "two"), ("two", "three"), ("three", "four"), ("four", "five")):
        write(f"{name}.py", f"import {behind}\n#" + 80_000 * " ")
    assert beside(write("p.py", "import one\n")) == ("four.py", "one.py", "three.py", "two.py")
    write("five.py", "")    # the fourth would be more than 256 KiB
    assert "five.py" not in beside("p.py")


def test_a_link_to_an_installed_package_is_not_beside_and_one_to_ones_own_is(tmp_path: Path) -> None:
    write("lib/site-packages/theirs/__init__.py", "")
    write("elsewhere/mine.py", "")
    write("own/p.py", "import theirs, mine\n")
    Path("own/theirs").symlink_to(tmp_path / "lib/site-packages/theirs")
    Path("own/mine.py").symlink_to(tmp_path / "elsewhere/mine.py")
    assert beside("own/p.py") == ("own/mine.py",)
    assert beside(write("lib/site-packages/p.py", "import theirs\n")) == ("lib/site-packages/theirs/__init__.py",)


def test_what_ran_is_what_a_result_tells_of() -> None:
    """A module runs once in a process, so one that has changed since is not what another run would run."""
    write("helper_told.py", "CAP = 3\n")
    name = write("my.py", POLICY.format(module="helper_told"))
    first = sim.simulate("azure-conv-2023", f"{name}:Mine", num_prompts=5)
    assert dict(first.setup.files) == {each: digest(each) for each in ("my.py", "helper_told.py")}
    ran = digest("helper_told.py")
    assert code_run("my.py", digest("my.py")) == {"my.py": digest("my.py"), "helper_told.py": ran}
    write("helper_told.py", "CAP = 400\n")
    with pytest.raises(FileChanged, match=r"^helper_told\.py has changed since it was first read"):
        sim.simulate("azure-conv-2023", f"{name}:Mine", num_prompts=5)
    made = sim.simulate("azure-conv-2023", first.policy, num_prompts=5)    # of what ran
    assert (made.policy.slots, made.setup.files["helper_told.py"]) == (3, ran)
    write("helper_told.py", "CAP = 3\n")
    assert sim.simulate("azure-conv-2023", f"{name}:Mine", num_prompts=5).policy.slots == 3


def test_a_module_that_did_not_run_may_change() -> None:
    write("helper_late.py", "CAP = \n")
    name = write("my.py", POLICY.format(module="helper_late"))
    with pytest.raises(InputError, match=r"my\.py, line 3: SyntaxError"):
        prepare(Scenario(policy=f"{name}:Mine", num_prompts=2))
    write("helper_late.py", "CAP = 3\n")
    assert prepare(Scenario(policy=f"{name}:Mine", num_prompts=2)).policy.slots == 3


def test_a_stored_point_stands_for_the_modules_too() -> None:
    write("helper_point.py", "CAP = 3\n")
    asked = Scenario(policy=write("my.py", POLICY.format(module="helper_point")) + ":Mine", num_prompts=2)
    before = identity(asked)
    write("helper_point.py", "CAP = 4\n")
    assert identity(asked) != before


def batchsim(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "simulator.cli", *words], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"})


def test_a_module_that_was_edited_is_told_wherever_an_edited_policy_file_is() -> None:
    write("helper.py", "CAP = 3\n")
    own = write("my.py", POLICY.format(module="helper")) + ":Mine"
    few = ("--num-prompts", "5", "--policy", own)
    for words in (("run", *few, "-o", "r"), ("sweep", *few, "--vary", "max_num_seqs=2", "-o", "s"),
                  ("baseline", "save", *few, "-o", "b.json")):
        found = batchsim(*words)
        assert found.returncode == 0, (words, found.stderr)
    assert list(json.loads(Path("r/Mine-trace.json").read_text())["scenario"]["files"]) == ["my.py", "helper.py"]
    write("helper.py", "CAP = 2    # fewer\n")
    told = batchsim("run", "--scenario", "r/Mine-trace.json")
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "helper.py has changed since this result was written" in told.stderr
    told = batchsim("sweep", *few, "--vary", "max_num_seqs=2", "-o", "s", "--resume")
    assert " of other settings, and none that is asked for now" in told.stderr
    told = batchsim("regress", "--baseline", "b.json")
    assert "helper.py changed" in told.stdout, told


# --- files too large to be digested before they are read --------------------------------------------------------------

@pytest.mark.parametrize("edit", [
    lambda path: path.write_text(path.read_text().replace("9", "8")), lambda path: os.utime(path, ns=(1, 1)),
    lambda path: (path.rename("aside.csv"), path.write_text(Path("aside.csv").read_text())), Path.unlink])
def test_a_large_trace_that_changes_while_it_is_read_is_told(edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "MOST_BYTES", 10)
    path = Path(write("t.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,9,2\n1,9,2\n"))
    assert list(prepare(Scenario(trace="t.csv")).files) == ["t.csv"]

    def reads(scenario: Scenario, read: Any = traffic.composed) -> Trace:
        found = read(scenario)
        edit(path)
        return found

    monkeypatch.setattr(traffic, "composed", reads)
    with pytest.raises(FileChanged, match=r"^t\.csv has changed since it was first read"):
        prepare(Scenario(trace="t.csv"))


def test_a_folder_is_told_from_what_it_was() -> None:
    write("folder/a/one.csv", "1")
    before = named.as_it_is("folder")
    assert before == named.as_it_is("folder")
    write("folder/a/two.csv", "1")
    assert named.as_it_is("folder") != before
    assert named.as_it_is("nowhere") == named.as_it_is("a\0b") == ()


def test_a_folder_has_a_digest_of_its_names_and_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    write("folder/a/one.csv", "1")
    before = named.digest_of("folder")
    assert before == named.digest_of("folder") != named.digest_of("folder/a")
    write("folder/a/two.csv", "22")
    assert named.digest_of("folder") != before
    for bound, most in (("MOST_FILES", 2), ("MOST_IN_FOLDER", 2)):    # a folder, two files of 3 bytes
        with monkeypatch.context() as bounds:
            bounds.setattr(named, bound, most)
            assert named.digest_of("folder") is None
            bounds.setattr(named, bound, most + 1)
            assert named.digest_of("folder") is not None
