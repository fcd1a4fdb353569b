"""A result directory: earlier runs' files are replaced, anybody else's are not."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread, current_thread
from unittest import mock

import pytest

from simulator.cli import turns
from simulator.cli.output import ResultDirectory, run_name
from simulator.errors import InputError

Call = Callable[..., tuple[int, str, str]]
RUN = ("run", "--num-prompts", "20", "--quiet", "--json", "-o", "out")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_run_writes_what_it_prints_and_a_manifest(batchsim: Call, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    status, out, _ = batchsim(*RUN)
    content = (tmp_path / "out" / "vllm-trace.json").read_bytes()
    assert status == 0
    assert content.decode() == out
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["sha256"] == {"vllm-trace.json": hashlib.sha256(content).hexdigest()}


def test_detail_is_a_table_and_arrays(batchsim: Call, tmp_path: Path) -> None:
    batchsim(*RUN, "--save-detailed", "--result-filename", "mine.json")
    assert names(tmp_path / "out") == ["manifest.json", "mine.json", "mine.requests.csv"]
    assert len((tmp_path / "out" / "mine.requests.csv").read_text().splitlines()) == 21
    assert len(json.loads((tmp_path / "out" / "mine.json").read_text())["ttfts"]) == 20


def test_save_result_writes_to_the_usual_place(batchsim: Call, tmp_path: Path) -> None:
    status, _, err = batchsim("run", "--num-prompts", "20", "--save-result")
    assert (status, err) == (0, "written to batchsim-out/vllm-trace.json\n")
    assert (tmp_path / "batchsim-out" / "vllm-trace.json").exists()


def test_a_second_run_replaces_the_first_and_keeps_others(batchsim: Call, tmp_path: Path) -> None:
    statuses = [batchsim(*RUN, *more)[0] for more in ((), ("--load", "saturated"), ())]
    assert statuses == [0, 0, 0]
    assert names(tmp_path / "out") == ["manifest.json", "vllm-saturated.json", "vllm-trace.json"]


def test_a_foreign_file_stays_without_force(batchsim: Call, refused: Callable[..., str], tmp_path: Path) -> None:
    foreign = tmp_path / "out" / "vllm-trace.json"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    assert refused(*RUN) == ("out/vllm-trace.json was not written by an earlier run, or was changed since: "
                             "give --force to replace it, or another --result-dir")
    assert names(foreign.parent) == ["vllm-trace.json"]
    assert batchsim(*RUN, "--force")[0] == 0
    assert foreign.read_text() != "mine"


def test_two_commands_that_write_at_once_do_so_in_turn(tmp_path: Path) -> None:
    """The other one begins when the first has read the manifest, and would be gone by when that is written."""
    other = Thread(target=lambda: ResultDirectory(tmp_path).write({"b.json": b"b", "both.json": b"b"}))

    def slow() -> Iterator[str]:
        yield "a"
        other.start()
        other.join(0.5)
        assert not (tmp_path / "b.json").exists()

    ResultDirectory(tmp_path).write({"both.json": b"a", "a.json": slow()})
    other.join()
    assert names(tmp_path) == ["a.json", "b.json", "both.json", "manifest.json"]
    assert (tmp_path / "both.json").read_text() == "b"
    ResultDirectory(tmp_path).check(["a.json", "b.json", "both.json"])


def test_a_command_that_looks_waits_while_another_one_replaces(tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the files and the manifest that lists them, what lies there looks like somebody's own."""
    ResultDirectory(tmp_path).write({"a.json": b"1"})
    refused: list[str] = []
    moved = Event()

    def look() -> None:
        try:
            ResultDirectory(tmp_path).check(["a.json"])
        except InputError as error:
            refused.append(str(error))

    other = Thread(target=look)
    read = ResultDirectory._manifest

    def slow(self: ResultDirectory) -> dict[str, set[str]]:
        known = read(self)
        if current_thread() is other:
            moved.wait(0.5)    # meanwhile the first one would replace the file, and what was read is outdated
        return known

    monkeypatch.setattr(ResultDirectory, "_manifest", slow)
    other.start()
    ResultDirectory(tmp_path).write({"a.json": b"2"})
    moved.set()
    other.join()
    assert refused == []


def test_a_file_changed_since_stays(refused: Callable[..., str], tmp_path: Path) -> None:
    directory = ResultDirectory(tmp_path / "out")
    directory.write({"vllm-trace.json": b"first"})
    (tmp_path / "out" / "vllm-trace.json").write_text("changed by hand")
    assert refused(*RUN).startswith("out/vllm-trace.json was not written by an earlier run, or was changed since")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"written_by": "another tool", "sha256": {}}', "\x00"])
def test_a_foreign_manifest_stays(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=r"manifest.json was not written by batchsim"):
        ResultDirectory(tmp_path).write({"a.json": b"new"})
    assert names(tmp_path) == ["manifest.json"]
    ResultDirectory(tmp_path, force=True).write({"a.json": b"new"})
    assert names(tmp_path) == ["a.json", "manifest.json"]


def test_one_refusal_leaves_all_files_alone(tmp_path: Path) -> None:
    directory = ResultDirectory(tmp_path)
    directory.write({"a.json": b"old"})
    (tmp_path / "b.json").write_bytes(b"foreign")
    with pytest.raises(InputError, match=r"b.json was not written"):
        directory.write({"a.json": b"new", "b.json": b"new"})
    assert (tmp_path / "a.json").read_bytes() == b"old"


def test_a_failed_write_leaves_the_old_files(tmp_path: Path) -> None:
    directory = ResultDirectory(tmp_path)
    directory.write({"a.json": b"old"})

    def full() -> Iterator[str]:
        yield "half of it"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/b.json'"):
        directory.write({"a.json": b"new", "b.json": full()})
    assert names(tmp_path) == ["a.json", "manifest.json"]
    assert (tmp_path / "a.json").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["", "manifest.json", "../a.json", "a/b.json", "/a.json"])
def test_names_stay_in_the_directory(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no name for a result file"):
        ResultDirectory(tmp_path / "out").write({name: b""})


def test_a_directory_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(InputError, match=r"a.json is a directory"):
        ResultDirectory(tmp_path, force=True).write({"a.json": b""})


def link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("make", [link, os.mkfifo if hasattr(os, "mkfifo") else link])
def test_what_is_no_regular_file_is_not_replaced(make: Callable[[Path], None], tmp_path: Path,
                                                 refused: Callable[..., str]) -> None:
    make(tmp_path / "a.json")
    with pytest.raises(InputError, match=r"a\.json is not a regular file: remove it, or give another --result-dir$"):
        ResultDirectory(tmp_path, force=True).check(["a.json"])
    assert refused("run", "--num-prompts", "30", "--force", "--trace-events", "a.json") == (
        "a.json is not a regular file: remove it, or give another --trace-events")
    assert names(tmp_path) == ["a.json"]


def test_a_place_that_is_not_writable_is_refused(tmp_path: Path, refused: Callable[..., str],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the system's answer is made up."""
    monkeypatch.setattr("simulator.cli.output.os.access", lambda path, mode: mode != os.W_OK)
    assert refused(*RUN) == ". is not writable, so out cannot be written: give another place"
    assert names(tmp_path) == []


def test_a_system_without_locks_lets_commands_write_all_the_same(tmp_path: Path) -> None:
    with mock.patch.dict(sys.modules, {"fcntl": None}):    # as on Windows
        known = runpy.run_path(turns.__file__)
    assert known["flock"] is None
    with known["in_turn"](tmp_path), known["in_turn"](tmp_path):    # nobody waits for the other
        (tmp_path / "a.json").write_text("1")
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize(("policy", "name"), [
    ("vllm", "vllm-trace.json"), ("dir/my_file.py:Mine", "dir-my_file.py-Mine-trace.json"),
    ("../..", "policy-trace.json")])
def test_a_policy_of_any_name_has_a_file(policy: str, name: str) -> None:
    assert run_name(policy, "trace") == name


def test_a_run_interrupted_while_it_writes_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ResultDirectory(tmp_path).write({"a.json": b"1", "b.json": b"1"})
    move, moved = Path.replace, []

    def interrupted(self: Path, target: Path) -> Path:
        moved.append(self)
        if len(moved) == 2:
            raise KeyboardInterrupt
        return move(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ResultDirectory(tmp_path).write({"a.json": b"2", "b.json": b"2"})
    monkeypatch.undo()
    assert [(tmp_path / name).read_bytes() for name in ("a.json", "b.json")] == [b"2", b"1"]
    ResultDirectory(tmp_path).write({"a.json": b"3", "b.json": b"3"})
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    (tmp_path / "a.json").write_bytes(b"mine")
    with pytest.raises(InputError, match="was changed since"):
        ResultDirectory(tmp_path).write({"a.json": b"4"})


def test_trace_events_are_one_file_that_is_not_replaced_unasked(batchsim: Call, tmp_path: Path) -> None:
    flags = ("run", "--num-prompts", "30", "--json", "--trace-events", "events.json")
    status, out, err = batchsim(*flags)
    assert (status, err) == (0, "")
    assert json.loads(out)["completed"] == 30
    found = json.loads((tmp_path / "events.json").read_text())
    assert {event["ph"] for event in found["traceEvents"]} == {"M", "X", "C"}
    assert batchsim(*flags)[0] == 2
    assert batchsim(*flags, "--force", "--quiet")[::2] == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["events.json"]


def test_trace_events_go_where_a_file_may_be(refused: Callable[..., str], tmp_path: Path) -> None:
    flags = ("run", "--num-prompts", "30", "--trace-events")
    assert refused(*flags, "no/where.json") == (
        "--trace-events must name a file in a directory that exists, not 'no/where.json'")
    assert refused(*flags, "-") == "--trace-events must name a file, not '-': --json prints to stdout"
    (tmp_path / "there.json").write_text("mine")
    assert refused(*flags, "there.json") == (
        "there.json exists: give --force to replace it, or another --trace-events")


@pytest.mark.parametrize("name", ["a.json", "a.requests.csv", "manifest.json"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_trace_events_are_no_file_of_the_result(name: str, force: tuple[str, ...], refused: Callable[..., str],
                                                tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    for place in ("out", "link"):
        told = refused(*RUN, "--save-detailed", "--result-filename", "a.json", "--trace-events", f"{place}/{name}",
                       *force)
        assert told == (f"--trace-events {place}/{name} is a file that this run writes itself: give another "
                        "--trace-events")
    assert names(tmp_path / "out") == []


def test_trace_events_may_lie_beside_the_result(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for _ in range(2):
        status, _, err = batchsim(*RUN, "--trace-events", "out/events.json", "--force")
        assert (status, err) == (0, "")
    assert names(tmp_path / "out") == ["events.json", "manifest.json", "vllm-trace.json"]


def test_a_run_takes_the_table_of_an_earlier_one_away(batchsim: Call, refused: Callable[..., str],
                                                      tmp_path: Path) -> None:
    out = tmp_path / "out"
    batchsim(*RUN, "--save-detailed")
    assert batchsim(*RUN, "--num-prompts", "10")[0] == 0
    assert names(out) == ["manifest.json", "vllm-trace.json"]
    assert json.loads((out / "manifest.json").read_text())["sha256"].keys() == {"vllm-trace.json"}
    batchsim(*RUN, "--save-detailed")
    (out / "vllm-trace.requests.csv").write_text("mine")
    before = (out / "vllm-trace.json").read_bytes()
    assert refused(*RUN).startswith("out/vllm-trace.requests.csv was not written by an earlier run, or was changed")
    assert (out / "vllm-trace.json").read_bytes() == before


def test_a_foreign_file_is_no_outdated_one(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "vllm-trace.requests.csv").write_text("mine")
    assert batchsim(*RUN)[0] == 0
    assert (tmp_path / "out" / "vllm-trace.requests.csv").read_text() == "mine"


def test_a_comparison_takes_the_tables_of_an_earlier_one_away(batchsim: Call, tmp_path: Path) -> None:
    line = ("compare", "--num-prompts", "5", "--quiet", "-o", "out")
    batchsim(*line, "--save-detailed")
    assert len([name for name in names(tmp_path / "out") if name.endswith(".requests.csv")]) == 4
    assert batchsim(*line)[0] == 0
    assert [name for name in names(tmp_path / "out") if name.endswith(".requests.csv")] == []
