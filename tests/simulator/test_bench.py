"""The benchmark: its workloads are what they say, its numbers belong to one run, and its processes are their own."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from simpy import Environment

import simulator as sim
import traces
from simulator.bench import WORKLOADS, Bench, Case, Measurement
from simulator.bench import measuring as measuring_module
from simulator.bench import running as running_module
from simulator.bench.__main__ import main as answer_to
from simulator.bench.made import CONVERSATION, conversations, lognormal, period, uniform
from simulator.bench.measuring import measure, measure_apart, peak_mib
from simulator.bench.report import label
from simulator.bench.running import cases
from simulator.bench.work import Work, written
from simulator.bench.workloads import CONVERSATION_CAPACITY, CONVERSATION_RATE, planning, saturated
from simulator.errors import InputError
from simulator.policies import POLICIES

SMALL = 40


def test_the_planning_trace() -> None:
    trace = uniform(10_000)
    assert (trace.prompt.min(), trace.prompt.max(), trace.output.min(), trace.output.max()) == (256, 768, 128, 256)
    assert trace.describe()["rate"] == pytest.approx(10, rel=0.02)
    assert trace.describe()["gap_cv"] == pytest.approx(1, rel=0.03)


def test_the_saturated_trace() -> None:
    trace = lognormal(20_000)
    assert not trace.arrival.any()
    assert (np.median(trace.prompt), np.median(trace.output)) == (pytest.approx(245, rel=0.02),
                                                                  pytest.approx(148, rel=0.02))
    assert np.log(trace.prompt).std() == pytest.approx(1.0, rel=0.02)
    assert np.log(trace.output).std() == pytest.approx(0.9, rel=0.02)


def test_conversations_are_whole_copies_one_after_another() -> None:
    one = traces.load(CONVERSATION)
    rows, trace = len(one), conversations(2 * len(one) + 5)
    assert np.array_equal(trace.arrival[:rows], one.arrival)
    assert np.array_equal(trace.arrival[rows:2 * rows] - one.arrival, np.full(rows, period(one)))
    assert np.array_equal(trace.prompt[2 * rows:], one.prompt[:5])
    assert np.array_equal(trace.output[rows:2 * rows], one.output)
    assert len(conversations(7)) == 7


def test_the_capacity_is_that_of_today() -> None:
    """What the stand-in's load is scaled to: 0.9 of what the default run serves when everybody waits from the start."""
    one = traces.load(CONVERSATION)
    served = sim.simulate(one, load="saturated").summary()["request_throughput"]
    assert served == pytest.approx(CONVERSATION_CAPACITY, rel=0.01)
    assert len(one) / (period(one) / 1e9) == pytest.approx(CONVERSATION_RATE, rel=0.001)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_runs_at_a_small_size(name: str) -> None:
    workload = WORKLOADS[name]
    policy = workload.policies[-1] if workload.policies else ""
    found = measure(Case(name, policy, SMALL), repeat=2)
    assert found[:4] == (name, policy, SMALL, 2)
    assert found.cpu_s > 0
    assert found.peak_mib is not None
    assert found.peak_mib > 5


def test_counts_and_rates_are_those_of_one_run() -> None:
    env, case = Environment(initial_time=0), Case("planning", "vllm", SMALL)
    record = sim.run(planning(case), env=env).record
    found = measure(case, repeat=1)
    assert (found.plans, found.steps, found.events) == (len(record.plans), len(record.ends), next(env._eid))
    rates = found.to_dict()
    assert rates["us_per_step"] * rates["steps_per_s"] == pytest.approx(1e6)
    assert rates["us_per_request"] * rates["requests_per_s"] == pytest.approx(1e6)
    assert found.whole_s == found.cpu_s + (found.summary_s or 0)


def test_simpy_numbers_its_events() -> None:
    """The count of events relies on a name that SimPy does not promise."""
    class Counted(Environment):
        events = 0

        def step(self) -> None:
            super().step()
            self.events += 1

    env = Counted(initial_time=0)
    sim.run(planning(Case("planning", "vllm", SMALL)), env=env)
    assert next(env._eid) == env.events


def test_the_best_attempt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    works = iter([Work(3.0, 1.0, 1, 1, 1), Work(2.0, 0.5, 1, 1, 1), Work(2.2, 0.1, 1, 1, 1), Work(9.0)])
    workload = measuring_module.WORKLOADS["planning"]
    monkeypatch.setitem(measuring_module.WORKLOADS, "planning",
                        type(workload)("", (1,), (1,), lambda case, folder: lambda: next(works)))
    found = measure(Case("planning", "vllm", 1), repeat=None)
    assert (found.cpu_s, found.summary_s) == (2.2, 0.1)
    assert found.attempts == 4, "they stop when they have taken long enough"


def test_a_fresh_process_does_not_pay_for_this_one() -> None:
    ballast = bytearray(150 << 20)
    found = measure_apart(Case("planning", "vllm", SMALL), repeat=1)
    assert peak_mib() > 150 > found.peak_mib > 5    # type: ignore[operator]
    assert len(ballast) == 150 << 20


@pytest.mark.parametrize(("rule", "complaint"), [
    ("return 3", r"Lazy: plan must return a Step"),
    ("return 1 / 0", r"Lazy: its plan raised an error \(ZeroDivisionError: division by zero in mine\.py, line 4\)"),
])
def test_what_is_wrong_with_a_policy_is_one_line(rule: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from simulator.policies import Policy\nclass Lazy(Policy):\n"
                    f"    def plan(self, queue, memory, now):\n        {rule}\n")
    with pytest.raises(InputError, match=f"^planning with 40 requests: {complaint}") as error:
        measure_apart(Case("planning", f"{file}:Lazy", SMALL), repeat=1)
    assert "\n" not in str(error.value)


def asked(policy: str, workload: str = "planning") -> str:
    """The question that the fresh process gets."""
    return json.dumps({"case": Case(workload, policy, SMALL)._asdict(), "repeat": 1})


def test_what_a_policy_file_raises_before_it_plans_is_an_answer(tmp_path: Path,
                                                                capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from simulator.policies import Vllm\nclass Mine(Vllm):\n"
                    "    def __init__(self):\n        raise KeyError('nothing there')\n")
    answer_to(asked(f"{file}:Mine"))
    assert json.loads(capsys.readouterr().out) == {"error": f"{file}, line 4: KeyError: 'nothing there'"}


def test_our_own_fault_is_no_answer() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        answer_to(asked("vllm", "nowhere"))
    with pytest.raises(RuntimeError, match=r"^nowhere with 40 requests: \[\"KeyError: 'nowhere'\"\]$"):
        measure_apart(Case("nowhere", "vllm", SMALL), repeat=1)


def test_a_process_that_is_killed_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, signal\nfrom simulator.policies import Vllm\nclass Mine(Vllm):\n"
        "    def plan(self, queue, memory, now):\n        os.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(InputError, match=r"^planning with 40 requests: the process was killed by signal 9; if memory "
                                         r"is short, try --quick or another workload$"):
        measure_apart(Case("planning", f"{tmp_path / 'mine.py'}:Mine", SMALL), repeat=1)


def test_peak_memory_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_module, "Path", lambda _: tmp_path / "nowhere")
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=3 << 20))
    monkeypatch.setitem(sys.modules, "resource", usage)    # KiB, but bytes on a Mac
    for platform, mib in (("linux", 3 << 10), ("darwin", 3)):
        monkeypatch.setattr(sys, "platform", platform)
        assert peak_mib() == mib
    monkeypatch.setitem(sys.modules, "resource", None)    # as on Windows
    assert peak_mib() is None


@pytest.mark.parametrize(("told", "name"), [
    ("processor: 0\nmodel name\t: Fast CPU\nmodel name\t: Other\n", "Fast CPU"),
    ("processor: 0\n", "aarch64"), (None, "aarch64")])
def test_the_processor_has_the_name_that_linux_tells_else_its_kind(told: str | None, name: str,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str, encoding: str) -> StringIO:
        if told is None:
            raise FileNotFoundError(path)
        return StringIO(told)

    monkeypatch.setattr("simulator.bench.running.open", opened, raising=False)
    monkeypatch.setattr("simulator.bench.running.platform.machine", lambda: "aarch64")
    assert running_module._processor() == name


def test_the_file_that_is_read_holds_the_trace(tmp_path: Path) -> None:
    trace = uniform(50)
    again = traces.load(written(trace, tmp_path), unit="ns")
    assert all(np.array_equal(getattr(trace, name), getattr(again, name)) for name in ("arrival", "prompt", "output"))


def test_which_cases_are_asked_for() -> None:
    assert [case[:3] for case in cases(["read", "planning"], None, True, 0)] == [
        ("planning", "vllm", 1000), ("read", "", 20_000)]
    assert [case.policy for case in cases(["policies"], None, True, 0)] == list(POLICIES)
    assert [case[:3] for case in cases(["million", "command"], ["orca", "orca"], True, 0)] == [
        ("command", "", 1000), ("million", "orca", 1000), ("million", "orca", 10_000)]
    assert {case.workload for case in cases(None, None, False, 0)} == set(WORKLOADS)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_runs_with_all_slots(name: str) -> None:
    """None is kept from its 256 slots by memory, nor by a bound of its own."""
    result = sim.run(saturated(Case("policies", name, 300), 256, None))
    assert result.record.plan("running").max() == 256
    assert result.summary()["completed"] == 300
    assert result.summary()["preemptions"] == 0


def measurement(workload: str, policy: str, rows: int, cpu_s: float) -> Measurement:
    return Measurement(workload, policy, rows, 1, cpu_s, 0.0, 100, 200, 300, 50.0)


def test_the_notes_say_what_the_figures_come_to() -> None:
    found = Bench({}, (measurement("million", "vllm", 100, 1.0), measurement("million", "vllm", 1000, 12.0),
                       measurement("policies", "static", 10, 3.0), measurement("policies", "vllm", 10, 2.0)))
    speed, policies, counts = found.tables()
    assert speed.note == "million: one of 1,000 requests takes 1.20 times as long as one of 100."
    assert policies.note == "The slowest step is that of static: 1.5 times that of vllm."
    assert speed.rows[0] == ("million", "100", "1.00", "100", "200", "10000.0", "5000.0", "10000.0", "50")
    assert counts.rows[0] == ("million", "100", "100", "1.00", "200", "2.00", "300", "3.00")
    assert json.dumps(found.records())
    [policies, _] = Bench({}, (measurement("policies", "static", 10, 3.0),)).tables()
    assert policies.note == "", "there is nothing to hold it against"


def test_a_policy_is_named_where_it_is_not_the_usual_one() -> None:
    names = [label("planning", "vllm"), label("planning", "orca"), label("read", ""), label("policies", "vllm")]
    assert names == ["planning", "planning, orca", "read", "policies, vllm"]
