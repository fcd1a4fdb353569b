"""Conformance: what is read, what is replayed, and that nothing that differs is missed. And the replica's watcher."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from worlds import play_both, trace_of

from cost_models import StepShape
from simulator.conformance import MODES, Mode, Recording, Verdict, check, compare, conformance, recordings
from simulator.conformance.engine import Clock
from simulator.conformance.vllm import STEP, vllm_case
from simulator.errors import InputError, PolicyError
from simulator.memory import Memory
from simulator.policies import Policy, Vllm
from simulator.pricing import SMALLEST
from simulator.scenario import Scenario
from simulator.simulation import run, simulate
from simulator.step import Queue, Step, Wait

GOLDEN = Path(__file__).parents[1] / "golden" / "vllm"
Lines = list[dict[str, Any]]


def golden(name: str) -> tuple[dict[str, Any], Lines, Lines]:
    """Options, requests and trace of a recording."""
    [recording] = recordings(GOLDEN, [name])
    requests, trace = (
        [json.loads(line) for line in gzip.decompress(recording.paths[part].read_bytes()).splitlines()]
        for part in ("requests", "trace"))
    return recording.options, requests, trace


def written(folder: Path, options: Any, requests: Lines, trace: Lines, name: str = "made") -> Recording:
    """The same as files, plain ones."""
    (folder / f"{name}.opts.json").write_text(json.dumps(options))
    (folder / f"{name}.requests.jsonl").write_text("\n".join(map(json.dumps, requests)))
    (folder / f"{name}.trace.jsonl").write_text("\n".join(map(json.dumps, trace)))
    [recording] = recordings(folder, [name])
    return recording


# Nothing that differs is missed

def other(value: Any) -> Any:
    """A value that is not this one."""
    return [*value, "nobody"] if isinstance(value, list) else value + 1 if isinstance(value, int) else f"not {value}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEP)
def test_each_field_of_a_step_is_compared(name: str, mode: Mode, tmp_path: Path) -> None:
    options, requests, trace = golden("21_realistic_prefix")
    trace[161][name] = other(trace[161][name])    # step 160, within a stretch
    difference = compare(written(tmp_path, options, requests, trace), vllm_case, mode).difference
    assert difference is not None
    assert (difference.part, difference.number, difference.fields) == ("step", 160, (name,))
    assert difference.recorded is not None
    assert difference.simulated is not None
    assert difference.recorded[name] == other(difference.simulated[name])


@pytest.mark.parametrize(("part", "at"), [("header", 0), ("footer", -1)])
def test_each_field_of_header_and_footer_is_compared(part: str, at: int, tmp_path: Path) -> None:
    options, requests, trace = golden("09b_giant_output")
    compared = [name for name in trace[at][part] if name not in ("vllm_version", "config_mode")]
    assert len(compared) >= 6
    for name in compared:
        value = trace[at][part][name]
        wrong = value | {"block_size": 8} if isinstance(value, dict) else other(value)
        lines = [line | {part: line[part] | {name: wrong}} if part in line else line for line in trace]
        difference = compare(written(tmp_path, options, requests, lines), vllm_case, "exact").difference
        assert difference is not None
        assert (difference.part, difference.fields) == (part, (name,))


@pytest.mark.parametrize("mode", MODES)
def test_order_and_kind_and_computed_are_compared(mode: Mode, tmp_path: Path) -> None:
    options, requests, trace = golden("14_priority_prefix_preempt")
    at = next(at for at, line in enumerate(trace) if "resumed" in [row[1] for row in line.get("sched", ())])
    rows = trace[at]["sched"]
    resumed = next(row for row in rows if row[1] == "resumed")
    changed = [[row, *rows[:-1]] for row in rows[-1:]] + [
        [[name, "new", tokens, before] if row is resumed else row for row in rows for name, _, tokens, before in [row]],
        [[*row[:3], row[3] + 1] if row is resumed else row for row in rows]]
    for wrong in changed:
        lines = [*trace[:at], trace[at] | {"sched": wrong}, *trace[at + 1:]]
        difference = compare(written(tmp_path, options, requests, lines), vllm_case, mode).difference
        assert difference is not None
        assert (difference.number, difference.fields) == (at - 1, ("sched",))


@pytest.mark.parametrize("mode", MODES)
def test_a_step_too_few_or_too_many_is_a_difference(mode: Mode, tmp_path: Path) -> None:
    options, requests, trace = golden("01_light")
    short = compare(written(tmp_path, options, requests, trace[:400]), vllm_case, mode)
    assert short.steps == 399
    assert short.difference is not None
    assert short.difference.recorded is None
    assert short.difference.simulated == trace[400]
    longer = [*trace[:-1], trace[-2] | {"step": 10_000}, trace[-1]]
    long = compare(written(tmp_path, options, requests, longer), vllm_case, mode)
    assert long.difference is not None
    assert (long.steps, long.difference.recorded, long.difference.simulated) == (539, longer[-2], None)


def test_what_is_not_recorded_is_named(tmp_path: Path) -> None:
    options, requests, trace = golden("01_light")
    lines = [{field: value for field, value in line.items() if field not in ("waiting", "used_sched")}
             for line in trace[1:-1]]
    outcome = compare(written(tmp_path, options, requests, lines), vllm_case, "fast")
    assert (outcome.steps, outcome.difference, outcome.unrecorded) == (539, None, ("used_sched", "waiting", "footer"))


def test_a_list_is_cut_only_where_its_number_says_so(tmp_path: Path) -> None:
    options, requests, trace = golden("17_priority_ties")
    assert trace[1]["n_waiting"] == len(trace[1]["waiting"]) == 11
    trace[1]["waiting"] = trace[1]["waiting"][:5]
    assert compare(written(tmp_path, options, requests, trace), vllm_case, "exact").difference is None
    del trace[1]["n_waiting"]
    difference = compare(written(tmp_path, options, requests, trace), vllm_case, "exact").difference
    assert difference is not None
    assert difference.fields == ("waiting",)


class Lazy(Vllm):
    """Runs nothing from its fifth step on, and says that it is a step."""

    steps = 0

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self.steps += 1
        return super().plan(queue, memory, now) if self.steps < 5 else Step()


def test_what_cannot_be_run_is_a_difference_too() -> None:
    [recording] = recordings(GOLDEN, ["11_output_len_1"])
    verdict = check(recording, partial(vllm_case, policy=Lazy), MODES)
    assert verdict.difference is not None
    assert verdict.difference.fields == ("error",)
    assert "planned a step that computes nothing" in str(verdict.difference.simulated)
    assert [outcome.mode for outcome in verdict.outcomes] == ["exact"], "the first that differs is the last"
    assert verdict.to_dict()["difference"]["recorded"]["step"] == verdict.steps


# The engine's loop, worked out by hand

SMALL = {"num_gpu_blocks": 4, "block_size": 4, "max_num_batched_tokens": 64}
GIANT = {"id": "giant", "prompt_tokens": 13, "output_tokens": 2, "priority": 1}


def decided(**fields: Any) -> dict[str, Any]:
    """A step in which nothing runs and one waits, unless said otherwise."""
    nothing: dict[str, Any] = {name: [] for name in ("arrived", "sched", "preempted", "sampled", "finished", "running")}
    return nothing | {"tokens": 0, "used_sched": 0, "used": 0, "free": 3, "n_running": 0, "n_waiting": 1,
                      "waiting": ["giant"]} | fields


def served(name: str) -> dict[str, Any]:
    return {"arrived": [name], "sched": [[name, "new", 4, 0]], "tokens": 4, "used_sched": 1, "sampled": [name],
            "finished": [name]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("clock", "starts"), [
    ({"clock": "step"}, [0, 1, 2, 3, 4]),
    ({"clock": "us", "step_base_us": 10, "step_per_token_us": 1}, [0, 10, 20, 30, 44]),
    ({"clock": "us", "step_per_token_us": 7}, [0, 25, 53]),
])
def test_a_loop_that_finds_nothing_asks_again(clock: dict[str, Any], starts: list[int], mode: Mode,
                                              tmp_path: Path) -> None:
    """A giant that never fits stalls the queue, until somebody more urgent comes; then it stalls again.

    Where an empty step takes no time, the loop waits for the arrival. It ends where nobody is left to come.
    """
    unit = clock["clock"]
    requests = [GIANT | {f"arrival_{unit}": 0},
                {"id": "small", "prompt_tokens": 4, "output_tokens": 1, f"arrival_{unit}": 3 if unit == "step" else 25}]
    empty = len(starts) - 2
    changes = [{"arrived": ["giant"]}, *[{}] * (empty - 1), served("small"), {}]
    time = "t_us" if unit == "us" else "step"
    trace: Lines = [decided(**change, **{time: start}) | ({"step": number} if unit == "us" else {})
                    for number, (change, start) in enumerate(zip(changes, starts, strict=True))]
    trace.append({"footer": {"end": "stalled: nothing schedulable, no arrivals left", "steps": len(starts), "tokens": 4,
                             "preemptions": 0, "finished": 1, "unfinished": ["giant"], "n_unfinished": 1,
                             "empty_steps": empty + 1, "peak_running": 0}})
    recording = written(tmp_path, SMALL | clock | {"policy": "priority"}, requests, trace)
    outcome = compare(recording, vllm_case, mode)
    assert (outcome.difference, outcome.steps, outcome.unrecorded) == (None, len(starts), ())


@pytest.mark.parametrize("mode", MODES)
def test_a_recorder_that_gives_up_is_followed_up_to_there(mode: Mode, tmp_path: Path) -> None:
    options, requests, trace = golden("03_kv_preempt")
    lines = trace[1:501]
    totals = {"end": "max_steps (livelock?)", "steps": 500, "tokens": sum(line["tokens"] for line in lines),
              "preemptions": sum(len(line["preempted"]) for line in lines),
              "finished": sum(len(line["finished"]) for line in lines)}
    recording = written(tmp_path, options | {"max_steps": 500}, requests, [*lines, {"footer": totals}])
    outcome = compare(recording, vllm_case, mode)
    assert (outcome.difference, outcome.steps) == (None, 500)


# What is read

@pytest.mark.parametrize("name", ["07_prefix_shared", "13_prefix_preempt", "14_priority_prefix_preempt"])
def test_token_ids_say_the_same_as_groups(name: str, tmp_path: Path) -> None:
    options, requests, trace = golden(name)
    spelled = []
    for number, row in enumerate(requests):
        shared = row.pop("prefix_tokens", 0)
        group, prompt = row.pop("prefix_group", None), row.pop("prompt_tokens")
        tokens = [int.from_bytes(str(group).encode()) + at for at in range(shared)][:prompt]
        tokens += [-1000 * number - at for at in range(prompt - len(tokens))]
        spelled.append(row | {"prompt_token_ids": tokens})
    for mode in MODES:
        assert compare(written(tmp_path, options, spelled, trace), vllm_case, mode).difference is None


def test_prompts_share_blocks_only_as_far_as_all_their_tokens_agree(tmp_path: Path) -> None:
    prompts = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 0, 6, 7, 8, 9], [0, 2, 3, 4, 5, 6, 7, 8, 9]]
    requests = [{"id": f"r{at}", "prompt_token_ids": prompt, "output_tokens": 1} for at, prompt in enumerate(prompts)]
    options = {"block_size": 4, "enable_prefix_caching": True}
    sched = [["r0", "new", 9, 0], ["r1", "new", 5, 4], ["r2", "new", 9, 0]]
    recording = written(tmp_path, options, requests, [{"sched": sched, "tokens": 23}])
    assert compare(recording, vllm_case, "exact").difference is None


def test_plain_and_gzipped_files_are_the_same(tmp_path: Path) -> None:
    options, requests, trace = golden("01_light")
    recording = written(tmp_path, options, requests, trace)
    [zipped] = recordings(GOLDEN, ["01_light"])
    assert compare(recording, vllm_case, "fast") == compare(zipped, vllm_case, "fast")


def test_a_directory_is_checked_scenario_by_scenario() -> None:
    verdicts = list(conformance("vllm", GOLDEN, only=["01*", "05_no_chunking"]))
    assert [(verdict.name, verdict.identical, verdict.steps) for verdict in verdicts] == [
        ("01_light", True, 539), ("05_no_chunking", True, 174)]
    assert all(isinstance(verdict, Verdict) and len(verdict.outcomes) == 2 for verdict in verdicts)
    assert list(conformance(vllm_case, GOLDEN, only=["01*", "05_no_chunking"])) == verdicts


def test_a_header_that_an_engine_says_nothing_of_is_passed_over(tmp_path: Path) -> None:
    [plain] = recordings(GOLDEN.parent / "sglang", ["s1_prefill_first"])
    for part, path in plain.paths.items():
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        head = b'{"header": {"sglang_version": "0.5"}}\n' if part == "trace" else b""
        (tmp_path / path.name.removesuffix(".gz")).write_bytes(head + content)
    [headed] = recordings(tmp_path)
    assert check(headed, "sglang") == check(plain, "sglang")


def test_the_clock_counts_steps_and_tokens() -> None:
    clock, step = Clock(5, 2), StepShape(3, 40, ((7, 0),))
    assert (clock.name, clock.origin) == ("clock", "the recording")
    assert (clock.time(step), clock.time(SMALLEST)) == (5 + 2 * 10, 5)
    assert clock.decode_times(StepShape(3, 40), 4) == [5 + 2 * 3] * 4


ROW = {"id": "a", "prompt_tokens": 5, "output_tokens": 2}
REFUSALS: list[tuple[Any, Lines, str]] = [
    ({"max_num_seq": 3}, [ROW], "unknown option in made.opts.json: 'max_num_seq': did you mean 'max_num_seqs'? (known"),
    ({"max_num_seqs": "many"}, [ROW], "made.opts.json: vllm: max_num_seqs must be a whole number of at least 1, not"),
    ({"max_num_seqs": 9, "max_num_batched_tokens": 8}, [ROW], "made.opts.json: vllm: max_num_batched_tokens (8) must"),
    ({"num_gpu_blocks": 1}, [ROW], "made.opts.json: num_gpu_blocks must be a whole number of at least 2, not 1"),
    ({"policy": "sjf"}, [ROW], "made.opts.json: vllm: scheduling_policy must be one of fcfs, priority, not 'sjf'"),
    ({"clock": "ms"}, [ROW], "made.opts.json: clock must be step or us, not 'ms'"),
    ({"clock": "us"}, [ROW], "made.opts.json: with clock us a step needs a duration: give step_base_us or"),
    ([1], [ROW], "made.opts.json: must be a JSON object, not [1]"),
    ({}, [ROW | {"promt": 3}], "unknown field in made.requests.jsonl, line 1: 'promt': did you mean 'priority'?"),
    ({}, [ROW, ROW], "made.requests.jsonl, line 2: id 'a' is also in line 1"),
    ({}, [ROW | {"id": 7}], "made.requests.jsonl, line 1: id must be a word, not 7"),
    ({}, [{"id": "a", "output_tokens": 2}], "made.requests.jsonl, line 1: prompt_tokens must be a whole number of at "
                                            "least 1, and is missing"),
    ({}, [ROW | {"output_tokens": 0}], "made.requests.jsonl, line 1: output_tokens must be a whole number of at least"),
    ({}, [ROW | {"priority": "high"}], "made.requests.jsonl, line 1: priority must be a whole number, not 'high'"),
    ({}, [ROW | {"arrival_us": 5}], "made.requests.jsonl, line 1: clock is step, so give arrival_step instead of"),
    ({}, [ROW | {"prompt_token_ids": []}], "made.requests.jsonl, line 1: prompt_token_ids must be a list of whole"),
]


def refused(recording_of: Any) -> str:
    """The one line with which it is refused, file names without their directory."""
    with pytest.raises((InputError, ValueError)) as error:
        compare(recording_of(), vllm_case, "exact")
    words = str(error.value)
    assert "\n" not in words
    return " ".join(word.rpartition("/")[2] for word in words.split(" "))


@pytest.mark.parametrize(("options", "requests", "words"), REFUSALS, ids=[words[:60] for *_, words in REFUSALS])
def test_wrong_options_and_requests_are_refused(options: Any, requests: Lines, words: str, tmp_path: Path) -> None:
    assert refused(lambda: written(tmp_path, options, requests, [])).startswith(words)


@pytest.mark.parametrize(("trace", "words"), [
    ('{"step": 0,', "made.trace.jsonl, line 1: is not JSON ("),
    ('\n{"schedule": []}', "unknown field in made.trace.jsonl, line 2: 'schedule': did you mean 'sched'? (known: "),
    ('{}', "made.trace.jsonl, line 1: a step without a field says nothing: leave the line out"),
    ('{"header": 3}', "made.trace.jsonl, line 1: header must be a JSON object, not 3"),
    ('{"footer": {}}\n{"step": 0}', "made.trace.jsonl, line 2: a line after the footer, which must be the last"),
])
def test_a_wrong_trace_is_refused(trace: str, words: str, tmp_path: Path) -> None:
    recording = written(tmp_path, {}, [ROW], [])
    recording.paths["trace"].write_text(trace)
    assert refused(lambda: recording).startswith(words)


def test_files_that_are_absent_broken_or_there_twice_are_named(tmp_path: Path) -> None:
    recording = written(tmp_path, {}, [ROW], [])
    double = tmp_path / "made.requests.jsonl.gz"
    double.write_bytes(b"nothing")
    assert "are the same part of one scenario: remove one of them" in refused(lambda: recordings(tmp_path)[0])
    recording.paths["requests"].unlink()
    assert refused(lambda: recordings(tmp_path)[0]).startswith("made.requests.jsonl.gz: not a whole gzip file (")
    double.unlink()
    assert refused(lambda: recordings(tmp_path)[0]).endswith(
        "scenario 'made' has no requests: add made.requests.jsonl")
    assert refused(lambda: recordings(tmp_path / "away")[0]).endswith("is not there: give a directory of recordings")


def test_a_file_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = written(tmp_path, {}, [ROW], [])
    zipped = tmp_path / "made.requests.jsonl.gz"
    zipped.write_bytes(gzip.compress(b" " * (3 << 20)))
    recording.paths["requests"].unlink()
    monkeypatch.setattr("simulator.conformance.recording.MOST_BYTES", 2 << 20)
    assert refused(lambda: recordings(tmp_path)[0]) == "made.requests.jsonl.gz: expands to more than 2 MiB"


# The replica's part

@dataclass
class Ears:
    """A watcher that writes down what it hears."""

    heard: list[str] = field(default_factory=list)

    def planned(self, step: Step, queue: Queue, now: int) -> None:
        self.heard.append(f"planned at {now}, {len(queue.running)} running")

    def committed(self, steps: int) -> None:
        self.heard.append(f"committed {steps}")


def test_a_watcher_hears_of_every_plan_and_every_commit() -> None:
    ears = Ears()
    run(Scenario(trace=trace_of([(0, 4, 5)]), policy="vllm", cost_model="constant:1"), watch=ears)
    ms = 1_000_000
    assert ears.heard == ["planned at 0, 1 running", "committed 1", f"planned at {ms}, 1 running", "committed 4"]


@dataclass
class ThrowsOut(Policy):
    """Lets everybody in, and throws all out again `times` times when they have computed their prompts."""

    times: int = 1
    thrown: int = field(default=0, init=False)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        step = Step([(request, request.lacking) for request in queue.catching_up.values()])
        if self.thrown < self.times and (queue.running or self.thrown):
            self.thrown += 1
            step.preempted = [queue.preempt(request, memory) for request in list(queue.running.values())]
            return Step(preempted=step.preempted)
        while queue.waiting:
            head = queue.admit()
            step.chunks.append((head, head.known))
        assert memory.take(queue.decoding, step.chunks)
        return step


def test_a_step_may_preempt_and_compute_nothing() -> None:
    """It takes as long as the smallest step, and the record shows it as a step like any other."""
    world = play_both([(0, 4, 3)], ThrowsOut(), capacity=160, verify=False)
    assert world.log == ["0: 0+4 | emit 0", "10: wait 0 | preempt 0", "20: 0+5 | emit 0", "30: 0+1 | emit 0 | leave 0"]
    summary = simulate(trace_of([(0, 4, 3), (0, 9, 2)]), ThrowsOut(), cost_model="constant:1").summary()
    assert (summary["completed"], summary["preemptions"], summary["steps"]) == (2, 2, 4)


def test_but_not_twice_in_a_row() -> None:
    with pytest.raises(PolicyError, match=r"computes nothing, in step 2 at 20 ns \(0 running, 1 waiting"):
        play_both([(0, 4, 3)], ThrowsOut(times=2), capacity=160)
