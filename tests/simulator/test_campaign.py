"""A campaign loses no point that was measured, and none that fails takes others along."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from odd_measures import DIES, DIES_ONCE, FAILS, FAILS_ONCE, IS_INTERRUPTED, edits, odd, served, tries

from simulator import InputError, Scenario, documents, read_scenario
from simulator.errors import FileChanged
from simulator.scenarios import record
from simulator.studies.campaign import Backend, Failure, Found, Store, campaign, local
from simulator.studies.campaign.answers import Fault, answer
from simulator.studies.campaign.cargo import distinct, loaded, unloaded, with_traces
from simulator.studies.campaign.kept import PARTS, identity, text_of_point
from simulator.studies.campaign.session import Session
from simulator.studies.campaign.store import KEPT
from simulator.version import __version__
from traces import Trace

TRACE = Trace("tiny", np.arange(6) * 10 ** 8, np.full(6, 30), np.arange(1, 7) * 5)
SMALL = Scenario(trace=TRACE)
TWO = Backend(workers=2)
OWN_MODEL = ("name: mine\nlayers: 2\nhidden: 64\nheads: 4\nkv_heads: 4\nhead_dim: 16\nffn: 128\nvocab: 100\n"
             "max_model_len: 4096\n")


def points(*seeds: int) -> dict[str, Scenario]:
    """Points named after their seeds, and some that are as they should be."""
    return {f"seed={seed}": SMALL.but(seed=seed) for seed in (*seeds, *range(6))}


def values(outcomes: dict[str, Found[dict[str, object]] | Failure]) -> dict[str, object]:
    return {key: outcome.value for key, outcome in outcomes.items() if isinstance(outcome, Found)}


def test_any_number_of_workers_gives_the_same_in_the_order_asked() -> None:
    asked = {f"{cap}": SMALL.but(knobs={"max_num_seqs": cap}) for cap in (4, 1, 3, 2)}
    one, two = (campaign(asked, served, backend=backend) for backend in (None, TWO))
    assert list(one) == ["4", "1", "3", "2"]
    assert list(one.items()) == list(two.items())
    assert one["1"] == Found(asked["1"], served(asked["1"]))


def test_it_tells_how_far_it_has_got() -> None:
    told: list[tuple[int, int]] = []
    campaign(points(), served, told=lambda done, of: told.append((done, of)))
    assert told == [(done, 6) for done in range(1, 7)]


def test_no_points_are_no_work() -> None:
    assert campaign({}, served) == {}


@pytest.mark.parametrize("backend", [Backend(), TWO])
def test_a_point_that_fails_is_tried_again_then_reported(backend: Backend, tmp_path: Path) -> None:
    found = campaign(points(FAILS, FAILS_ONCE), partial(odd, folder=str(tmp_path)), backend=backend, retries=2)
    assert found.pop(f"seed={FAILS}") == Failure(SMALL.but(seed=FAILS), "ValueError: out of luck", 3)
    assert (tries(tmp_path, FAILS), tries(tmp_path, FAILS_ONCE)) == (3, 2)
    assert values(found) == values(campaign(points(FAILS_ONCE), served))


def test_a_process_that_dies_takes_no_other_point_along(tmp_path: Path) -> None:
    found = campaign(points(DIES), partial(odd, folder=str(tmp_path)), backend=TWO, retries=1)
    dead = found.pop(f"seed={DIES}")
    assert dead == Failure(SMALL.but(seed=DIES), "the process that ran it died: killed, or out of memory", 2)
    assert values(found) == values(campaign(points(), served))


def test_a_process_that_dies_once_is_forgiven(tmp_path: Path) -> None:
    asked = {"dies": SMALL.but(seed=DIES_ONCE), "lives": SMALL}
    assert campaign(asked, partial(odd, folder=str(tmp_path)), backend=TWO, retries=1) == campaign(asked, served)
    assert tries(tmp_path, DIES_ONCE) == 2


class Loses(Backend):
    """This process, which loses the answers to the first calls it is given, however fast they are."""

    @contextmanager
    def open(self, traces: Sequence[Trace], points: int) -> Iterator[Session]:    # type: ignore[override]
        lost = iter([True])
        yield Session(traces, lambda calls: [None for _ in calls] if next(lost, False) else map(called, calls))


def called(call: tuple[Any, Any, Any]) -> Any:
    function, arguments, options = call
    return function(*arguments, **options)


def test_points_that_are_lost_together_use_up_no_try_but_one_alone_does() -> None:
    assert campaign(points(), served, backend=Loses(), retries=0) == campaign(points(), served)
    alone = campaign({"it": SMALL}, served, backend=Loses(), retries=0)
    assert alone == {"it": Failure(SMALL, "the process that ran it died: killed, or out of memory", 1)}


def test_what_cannot_be_run_as_it_is_asked_for_is_tried_once() -> None:
    found = campaign({"odd": SMALL.but(tensor_parallel_size=3), "even": SMALL}, served)
    refused = found["odd"]
    assert isinstance(refused, Failure)
    assert (refused.tries, refused.hopeless) == (1, True)
    assert refused.reason.startswith("tensor_parallel_size 3 does not deal the 32 heads")
    assert isinstance(found["even"], Found)


@pytest.mark.parametrize(("asked", "told"), [
    (lambda: Backend("dusk"), "unknown backend 'dusk': did you mean 'dask'? (known: local, dask, ray)"),
    (lambda: Backend("dask"), "backend dask needs the address of its scheduler: give --scheduler tcp://HOST:8786"),
    (lambda: Backend(address="tcp://h:1"),
     "backend local has no scheduler: give --backend dask or ray, or leave out --scheduler"),
    (lambda: Backend(workers=0), "workers must be a whole number of at least 1, not 0"),
    (lambda: campaign({}, served, retries=-1), "retries must be a whole number of at least 0, not -1"),
])
def test_what_it_refuses(asked: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        asked()    # type: ignore[operator]
    assert str(caught.value) == told


def test_equal_traces_travel_once() -> None:
    twin = Trace("tiny", TRACE.arrival, TRACE.prompt, TRACE.output)
    read = with_traces({"one": SMALL, "two": SMALL.but(trace=twin), "named": Scenario(num_prompts=3),
                        "again": Scenario(num_prompts=4), "drawn": Scenario(num_prompts=4, seed=1)})
    assert [trace.name for trace in distinct(read.values())] == ["tiny", "azure-conv-2023", "azure-conv-2023"]


def test_traces_are_read_as_each_point_says(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("t,p,o,q\n0,10,5,7\n1,10,5,7\n")
    base = Scenario(trace=str(tmp_path / "mine.csv"), mix={"azure-code-2023": 1.0}, num_prompts=4)
    columns = {"arrival": "t", "prompt": "p", "output": "o"}
    asked = {name: base.but(reading={"columns": columns | {"output": name}, "unit": "s"}) for name in "oq"}
    found = campaign(asked, served, backend=TWO)
    assert values(found) == {key: served(scenario) for key, scenario in asked.items()}
    assert len({value["trace_digest"] for value in values(found).values()}) == 2    # type: ignore[index]


def test_a_point_travels_without_its_trace() -> None:
    mixed = Scenario(mix={"azure-code-2023": 1.0}, num_prompts=3)
    for scenario in with_traces({"made": SMALL, "named": mixed}).values():
        assert scenario.read is not None
        bare = unloaded(scenario)
        assert (bare.read, isinstance(bare.trace, Trace)) == (None, False)
        assert loaded(bare, scenario.read).to_dict() == scenario.to_dict()


def test_a_store_knows_what_was_measured(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        first = campaign(points(), served, store=store)
    with Store(tmp_path, resume=True) as store:
        told: list[tuple[int, int]] = []
        again = campaign(points() | {"more": SMALL.but(seed=7)}, served, store=store,
                         told=lambda done, of: told.append((done, of)))
    assert told == [(6, 7), (7, 7)]
    assert list(values(again).values())[:6] == list(values(first).values())


def test_an_interrupted_one_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    asked = {key: points(IS_INTERRUPTED)[key] for key in (f"seed={seed}" for seed in (0, 1, IS_INTERRUPTED, 2, 3))}
    with Store(whole) as store:
        campaign(asked, served, store=store)
    with pytest.raises(KeyboardInterrupt), Store(broken) as store:
        campaign(asked, partial(odd, folder=str(tmp_path)), store=store)
    assert store.count() == 2
    with Store(broken, resume=True) as store:
        campaign(asked, partial(odd, folder=str(tmp_path)), store=store)
    assert [tries(tmp_path, seed) for seed in (0, IS_INTERRUPTED, 3)] == [1, 2, 1]
    left = [{path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
            for top in (whole, broken)]
    assert left[0] == left[1]
    assert len(left[0]) == 6    # five points and the lock


def test_a_stored_point_carries_its_scenario(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL.but(seed=5)}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    kept = json.loads(path.read_text())
    assert (kept["point"], kept["scenario"]["seed"], kept["value"]["seed"]) == ("it", 5, 5)


def test_a_stored_point_of_a_named_trace_can_be_run_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        asked = Scenario(num_prompts=5, knobs={"max_num_seqs": 2}, goodput={"ttft": 100}, request_rate=inf)
        campaign({"it": asked}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    assert served(read_scenario(path).scenario()) == json.loads(path.read_text())["value"]


def test_a_failure_is_not_kept_but_tried_again(tmp_path: Path) -> None:
    asked = partial(odd, folder=str(tmp_path))
    with Store(tmp_path / "out") as store:
        campaign(points(FAILS_ONCE), asked, store=store, retries=0)
    with Store(tmp_path / "out", resume=True) as store:
        assert len(values(campaign(points(FAILS_ONCE), asked, store=store, retries=0))) == 7


def test_points_of_an_earlier_run_are_taken_up_only_if_asked(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL}, served, store=store)
    with pytest.raises(InputError, match="has the points of an earlier run: give --resume to go on"), Store(tmp_path):
        pass
    with Store(tmp_path, resume=True):    # the refusal has let the lock go
        pass


def test_two_runs_are_kept_apart(tmp_path: Path) -> None:
    with FileLock(tmp_path / ".lock"), pytest.raises(InputError) as caught, Store(tmp_path):
        pass
    assert str(caught.value) == f"{tmp_path} is being written by another run: wait for it, or give another directory"


@pytest.mark.parametrize("torn", ["", "{", '{"value"', "[1]", "[]", "5", '"text"', "{}", '{"value": 5}', "\x00" * 40,
                                  "1" + 400 * "0", 5000 * "1", 10000 * "["])
def test_a_half_written_file_is_told_and_measured_again(tmp_path: Path, torn: str) -> None:
    with Store(tmp_path) as store:
        first = campaign({"it": SMALL}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    whole = path.read_bytes()
    path.write_text(torn)
    told: list[str] = []
    with Store(tmp_path, resume=True, told=told.append) as store:
        assert campaign({"it": SMALL}, served, store=store) == first
    assert told == [f"{path}: is half-written, or not ours: its point is measured again"]
    assert path.read_bytes() == whole


def resealed(**parts: Any) -> Callable[[dict[str, Any], Scenario], str]:
    """A file with parts replaced by somebody who knows how the checksum is made."""
    def made(told: dict[str, Any], scenario: Scenario) -> str:
        whole = {**told, **parts}
        text = json.dumps([whole[part] for part in PARTS[:-1]], sort_keys=True)
        return json.dumps(whole | {"sha256": hashlib.sha256(text.encode()).hexdigest()})
    return made


@pytest.mark.parametrize(("forged", "why"), [
    (lambda told, _: json.dumps(told | {"value": {**told["value"], "seed": 4}}), "was changed since it was written"),
    (lambda told, _: json.dumps(told | {"value": 5}), "was changed since it was written"),
    (lambda told, _: json.dumps(told | {"scenario": [10 ** 400]}), "was changed since it was written"),
    (lambda told, _: json.dumps(told | {"sha256": None}), "was changed since it was written"),
    (lambda told, _: json.dumps(told | {"simulator_version": "0.0.1"}), "is of batchsim '0.0.1', and this is "),
    (lambda told, asked: text_of_point("it", identity(asked.but(seed=6)), asked.but(seed=6), told["value"]),
     "holds another point than its name says"),
    (lambda told, asked: text_of_point("it", told["identity"], asked.but(seed=6), told["value"]),
     "holds another point than its name says"),
    (resealed(scenario=5), "holds another point than its name says"),
    (resealed(value=[]), "is not a result: it holds a list, not one record"),
    (resealed(value={}), "is not a result: it lacks backend, completed, duration"),
    (resealed(value={"backend": "batchsim:x", "completed": -1, "duration": 1.0}),
     "is no plausible result: completed must be at least 0, not -1"),
    (resealed(value={"backend": "batchsim:x", "completed": 10 ** 400, "duration": 1.0}),
     "is no plausible result: completed must be a number or null, not 1000"),
])
def test_only_what_the_point_came_to_is_taken_for_it(tmp_path: Path, why: str,
                                                     forged: Callable[[dict[str, Any], Scenario], str]) -> None:
    with Store(tmp_path) as store:
        first = campaign({"it": SMALL}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    whole = path.read_bytes()
    path.write_text(forged(json.loads(whole), with_traces({"it": SMALL})["it"]))
    told: list[str] = []
    with Store(tmp_path, resume=True, told=told.append) as store:
        assert campaign({"it": SMALL}, served, store=store) == first
    [line] = told
    assert line.startswith(f"{path}: {why}")
    assert line.endswith(": its point is measured again")
    assert path.read_bytes() == whole


def test_a_file_that_is_laid_out_anew_says_the_same(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    path.write_text(json.dumps(json.loads(path.read_text())))
    told: list[str] = []
    with Store(tmp_path, resume=True, told=told.append) as store:
        campaign({"it": SMALL}, failing, store=store)
    assert told == []


def failing(scenario: Scenario) -> dict[str, Any]:
    raise AssertionError("it is there already")


DRAFT = ".0123456789abcdef.json.77"


def test_what_a_killed_run_was_writing_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    points = tmp_path / "points"
    points.mkdir()
    for name in (DRAFT, ".0123.json.77", ".gitignore", ".0123456789abcdef.json.bak", ".settings.json.1"):
        (points / name).write_text("{")
    (points / ".1123456789abcdef.json.77").mkdir()
    (points / ".2123456789abcdef.json.77").symlink_to(tmp_path)
    before = {each.name for each in points.iterdir()}
    with Store(tmp_path) as store:
        campaign({}, served, store=store)
    assert {each.name for each in points.iterdir()} == before - {DRAFT}


def test_nothing_is_taken_away_where_a_link_leads_nor_before_the_directory_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / DRAFT).touch()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "points").symlink_to(tmp_path / "elsewhere")
    with Store(tmp_path / "linked") as store:
        campaign({}, served, store=store)
    other = tmp_path / "other" / "points"
    other.mkdir(parents=True)
    for name in (DRAFT, "0123456789abcdef.json"):
        (other / name).touch()
    with pytest.raises(InputError, match="has the points of an earlier run"), Store(other.parent):
        pass
    with pytest.raises(InputError, match="has 1 points of other settings"), Store(other.parent, resume=True) as store:
        campaign({"it": SMALL}, served, store=store)
    assert (other / DRAFT).exists()
    assert (tmp_path / "elsewhere" / DRAFT).exists()


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def full(path: Path, text: str) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        path.write_text(text)

    monkeypatch.setattr("simulator.studies.campaign.store.write_whole", full)
    with pytest.raises(InputError) as caught, Store(tmp_path) as store:
        campaign(points(), served, store=store)
    assert str(caught.value).endswith(
        ".json: No space left on device: what was measured before is kept; --resume goes on from there")
    monkeypatch.undo()
    with Store(tmp_path, resume=True) as store:
        told: list[tuple[int, int]] = []
        campaign(points(), served, store=store, told=lambda done, of: told.append((done, of)))
    assert told[0] == (2, 6)


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    path.unlink()
    path.mkdir()    # nobody can read a directory, not even root
    with pytest.raises(InputError, match=r"is not a regular file: remove it, and its point is measured again"), \
            Store(tmp_path, resume=True) as store:
        campaign({"it": SMALL}, served, store=store)


def test_a_lock_that_is_a_link_empties_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("work")
    (tmp_path / ".lock").symlink_to("mine")
    with pytest.raises(InputError, match=r"\.lock is a link"), Store(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "work"


def test_a_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(InputError, match=r"taken: (File exists|Not a directory)"), Store(tmp_path / "taken"):
        pass


@pytest.mark.parametrize("change", [
    {"seed": 1}, {"knobs": {"max_num_seqs": 3}}, {"policy": "static"}, {"goodput": {"ttft": 5}},
    {"trace": Trace("tiny", TRACE.arrival, TRACE.prompt + 1, TRACE.output)}, {"exact": True}])
def test_whatever_differs_is_another_point(change: dict[str, object]) -> None:
    assert identity(SMALL.but(**change)) != identity(SMALL)
    assert identity(SMALL) == identity(SMALL.but(trace=Trace("tiny", TRACE.arrival, TRACE.prompt, TRACE.output)))
    assert identity(SMALL, "p99") != identity(SMALL, "p90")


def test_a_policy_file_that_changed_is_another_point(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    text = "from simulator.policies import Vllm\nclass Mine(Vllm):\n    pass\n"
    path.write_text(text)
    before = identity(SMALL.but(policy=f"{path}:Mine"))
    path.write_text(text + "# and more\n")
    assert identity(SMALL.but(policy=f"{path}:Mine")) != before


def test_an_own_policy_runs_in_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from simulator.policies import Vllm\nclass Mine(Vllm):\n    pass\n")
    asked = {str(seed): SMALL.but(policy=f"{path}:Mine", seed=seed) for seed in (1, 2)}
    assert len(values(campaign(asked, served, backend=TWO))) == 2


POLICY = "from simulator.policies import Vllm\nclass Mine(Vllm):\n    pass\n"


def test_a_file_that_changes_under_a_campaign_ends_it_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    path, out = tmp_path / "mine.py", tmp_path / "out"
    path.write_text(POLICY)
    asked = {str(seed): SMALL.but(policy=f"{path}:Mine", seed=seed) for seed in range(3)}
    with pytest.raises(FileChanged) as caught, Store(out) as store:
        campaign(asked, partial(edits, path=str(path), at=1), store=store)
    assert str(caught.value) == (
        f"{path} has changed since it was first read, and what is done with it must go together: restore it, or begin "
        "again; what was measured before is kept, and --resume goes on with it once the file is as it was")
    [kept] = (out / "points").iterdir()
    digest = hashlib.sha256(POLICY.encode()).hexdigest()[:16]
    assert json.loads(kept.read_text())["scenario"]["files"] == {str(path): digest}

    with pytest.raises(InputError, match="has 1 points of other settings"), Store(out, resume=True) as store:
        campaign(asked, served, store=store)    # as edited
    path.write_text(POLICY)
    told: list[tuple[int, int]] = []
    with Store(out, resume=True) as store:
        assert len(values(campaign(asked, served, store=store, told=lambda *far: told.append(far)))) == 3
    assert told[0] == (1, 3)


def test_a_trace_that_is_edited_under_a_campaign_changes_no_point(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arrival,prompt,output\n0,10,5\n1,10,5\n")
    asked = {str(seed): Scenario(trace=str(path), reading={"unit": "s"}, seed=seed) for seed in range(3)}
    found = campaign(asked, partial(edits, path=str(path), at=1))
    assert path.read_text() != "arrival,prompt,output\n0,10,5\n1,10,5\n"
    assert {value["completed"] for value in values(found).values()} == {2}


def test_a_worker_that_finds_another_file_ends_the_campaign(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    asked = {str(seed): SMALL.but(policy=f"{path}:Mine", seed=seed) for seed in range(4)}
    with pytest.raises(FileChanged, match=r"mine.py has changed since it was first read"):
        campaign(asked, partial(edits, path=str(path), at=0), backend=TWO)


@pytest.mark.parametrize("field", ["model", "cost_model"])
def test_no_file_is_swapped_between_two_points(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(files("cost_models").joinpath("profiles", "llama-3.1-8b-h100-80-bf16.yaml").read_text()
                    if field == "cost_model" else OWN_MODEL)
    asked = {str(seed): SMALL.but(**{field: str(path)}, seed=seed) for seed in range(2)}
    with pytest.raises(FileChanged, match=r"mine.yaml has changed"):
        campaign(asked, partial(edits, path=str(path), at=1))


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    point = with_traces({"it": SMALL.but(policy=f"{path}:Mine")})["it"]
    path.unlink()
    with pytest.raises(FileChanged, match=r"mine.py was there when it was first read, and is not here now: restore"):
        served(point)


def test_what_a_store_keeps_runs_no_policy_file_again(tmp_path: Path) -> None:
    path, mark = tmp_path / "mine.py", tmp_path / "mark"
    path.write_text(POLICY)
    point = with_traces({"it": SMALL.but(policy=f"{path}:Mine")})["it"]
    value = served(point)
    path.write_text(f"open({str(mark)!r}, 'w').close()\n{POLICY}")
    with Store(tmp_path / "out") as store:
        store.keep("it", point, value)
    assert not mark.exists()
    [kept] = (tmp_path / "out" / "points").iterdir()
    assert json.loads(kept.read_text())["scenario"]["files"] == point.files


def test_a_trace_that_was_read_keeps_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("arrival,prompt,output\n0,10,5\n1,10,5\n")
    asked = Scenario(trace=str(path), reading={"unit": "s"})
    read = with_traces({"it": asked})["it"]
    path.write_text("arrival,prompt,output\n0,10,5\n")
    assert read.files == {str(path): hashlib.sha256(b"arrival,prompt,output\n0,10,5\n1,10,5\n").hexdigest()[:16]}
    assert served(read)["completed"] == 2
    assert record(read)["files"] == read.files
    assert asked.files == {}    # and whoever asks anew gets what is there
    assert served(asked)["completed"] == 1


def test_processes_look_for_files_where_the_caller_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {str(seed): SMALL.but(policy="mine.py:Mine", seed=seed) for seed in (1, 2)}
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"{POLICY}# {folder}\n")
        monkeypatch.chdir(tmp_path / folder)
        assert len(values(campaign(asked, served, backend=TWO))) == 2


def test_what_is_no_file_in_the_place_of_a_point_is_to_be_removed(tmp_path: Path) -> None:
    asked, out = {"it": SMALL}, tmp_path / "out"
    with Store(out) as store:
        campaign(asked, served, store=store)
    [point] = (out / "points").iterdir()
    for put in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/null")):
        point.unlink() if not point.is_dir() else point.rmdir()
        put(point)
        with pytest.raises(InputError) as caught, Store(out, resume=True) as store:
            campaign(asked, served, store=store)
        assert str(caught.value) == f"{point} is not a regular file: remove it, and its point is measured again"


class Stillborn(Backend):
    """Workers that die before they have taken a call."""

    @contextmanager
    def open(self, traces: Sequence[Trace], points: int) -> Iterator[Session]:    # type: ignore[override]
        def run(calls: Iterator[Any]) -> Iterator[Any]:
            raise ChildProcessError

        yield Session(traces, run, (ChildProcessError,))


def test_workers_that_die_before_they_begin_are_not_waited_for() -> None:
    with pytest.raises(InputError) as caught:
        campaign({"it": SMALL}, served, backend=Stillborn())
    assert str(caught.value) == "the workers die before they begin: see what they wrote themselves"


def test_a_worker_with_another_version_runs_nothing() -> None:
    key, fault = answer(TRACE, "it", SMALL, lambda scenario: pytest.fail("run"), "0.0.1")
    assert (key, fault) == ("it", Fault(f"a worker has batchsim {__version__}, this is 0.0.1: install the same on both",
                                        True))


def test_a_point_that_is_too_large_to_be_ours_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL}, served, store=store)
    [path] = (tmp_path / "points").iterdir()
    monkeypatch.setattr(documents, "MOST_BYTES", 1)
    with pytest.raises(InputError) as caught, Store(tmp_path, resume=True) as store:
        campaign({"it": SMALL}, served, store=store)
    assert str(caught.value) == f"{path}: holds more than 0 MiB: {KEPT}"


def test_a_file_that_changes_while_kept_points_are_read_ends_it(tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path) as store:
        campaign({"it": SMALL}, served, store=store)

    def changed(*_: object) -> None:
        raise FileChanged("mine.py has changed")

    monkeypatch.setattr("simulator.studies.campaign.store.value_in", changed)
    told: list[str] = []
    with pytest.raises(FileChanged), Store(tmp_path, resume=True, told=told.append) as store:
        campaign({"it": SMALL}, served, store=store)
    assert told == []


# ---- Processes of this machine

def test_only_joblibs_own_thread_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    ours = SimpleNamespace(thread=threading.current_thread())
    with local._silent_manager():
        threading.excepthook(SimpleNamespace(thread=type("_ExecutorManagerThread", (), {})()))    # type: ignore[arg-type]
        threading.excepthook(ours)    # type: ignore[arg-type]
    assert heard == [ours]
    assert threading.excepthook == heard.append


@pytest.mark.parametrize("before", [None, "error::UserWarning"])
@pytest.mark.parametrize("masks", [True, False])
def test_children_are_told_to_be_quiet_and_we_are_as_before(before: str | None, masks: bool,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    if before is None:
        monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    else:
        monkeypatch.setenv("PYTHONWARNINGS", before)
    blocked = signal.pthread_sigmask
    if not masks:
        monkeypatch.delattr(signal, "pthread_sigmask")
    with local._deaf_children():
        assert os.environ["PYTHONWARNINGS"] == f"{before},{local.QUIET}".removeprefix("None,")
        assert (blocked(signal.SIG_BLOCK, []) == mask | local.UNHEARD) == masks
    assert os.environ.get("PYTHONWARNINGS") == before
    assert blocked(signal.SIG_BLOCK, []) == mask


def test_a_process_stands_where_its_parent_does_and_ends_after_it(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[Callable[[], None]] = []
    monkeypatch.setattr(local.threading, "Thread", lambda target, daemon: SimpleNamespace(
        start=lambda: began.append(target)))
    monkeypatch.setattr(os, "_exit", lambda status: began.append(status))    # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    local._leave_with(-1, None)
    assert local._folder() == os.path.realpath(tmp_path)
    local._leave_with(-1, "/")
    assert local._folder() == "/"
    began[0]()
    assert began[2:] == [1]

    def gone() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    assert local._folder() is None
