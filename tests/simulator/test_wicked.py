"""Whatever a policy or a cost model of one's own does wrong, it gets one line that names it, step and request."""

from __future__ import annotations

from pathlib import Path

import pytest
import wicked
from wicked.costs import Listed, Numpy, Refuses
from wicked.honest import Honest
from worlds import trace_of

from simulator.cli.main import main

MODES = pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
WORLD = trace_of(wicked.ROWS)
WITHOUT_A_STEP = ("must", "its resolve", "its urgency", "its own knob", "at the end", "gave back")
"""Words of lines that tell of something before the first step, or after the last."""


@MODES
@pytest.mark.parametrize("kind", wicked.POLICIES.values(), ids=wicked.POLICIES)
def test_a_policy_that_misbehaves_gets_one_line(kind: type[Honest], exact: bool) -> None:
    told = wicked.told(WORLD, kind(), exact=exact)
    assert told.startswith("custom: ")
    assert kind.told in told
    assert "\n" not in told
    assert "in step " in told or "after " in told or any(word in told for word in WITHOUT_A_STEP)


@MODES
@pytest.mark.parametrize("kind", wicked.COSTS.values(), ids=wicked.COSTS)
def test_a_cost_model_that_misbehaves_gets_one_line(kind: type, exact: bool) -> None:
    told = wicked.told(WORLD, "vllm", kind(), exact=exact)
    if exact and kind.told.startswith(("its decode_times", "says")):
        assert told == "", "nobody asks for steps in a row"
        return
    assert told.startswith(f"cost model {kind.name}: ")
    assert kind.told in told
    assert "\n" not in told


@MODES
def test_who_breaks_nothing_is_told_nothing(exact: bool) -> None:
    assert wicked.told(WORLD, Honest(), exact=exact) == ""
    assert wicked.told(WORLD, "vllm", Numpy(), exact=exact) == ""
    assert wicked.told(WORLD, "vllm", Listed(), exact=exact) == ""


def test_what_a_cost_model_refuses_is_told_in_its_own_words() -> None:
    assert wicked.told(WORLD, "vllm", Refuses()) == "no step has two chunks: send one prompt after the other"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_who_wants_to_leave_leaves(error: type[BaseException]) -> None:
    class Leaves(Honest):
        def plan(self, queue, memory, now):
            raise error

    with pytest.raises(error):
        wicked.told(WORLD, Leaves())


@pytest.mark.parametrize("name", ["answers.Nothing", "answers.Divides", "answers.Dreamer", "answers.LeavesNone",
                                  "answers.Turns", "steps.Twice", "queues.Drops", "queues.PingPong", "queues.NoMemory"])
def test_the_command_line_says_the_same_and_exits_with_2(name: str, capsys: pytest.CaptureFixture[str],
                                                         tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("arrival,prompt,output\n0,20,6\n0,30,6\n0.5,10,4\n")
    file, _, kind = name.partition(".")
    status = main(["run", "--trace", str(rows), "--columns", "arrival=arrival,prompt=prompt,output=output", "--unit",
                   "s", "--policy", f"{wicked.HERE / file}.py:{kind}", "--kv-capacity-tokens", "160", "--cost-model",
                   "constant:1", "--max-model-len", "100"])
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"batchsim: {kind}: ")
    assert wicked.POLICIES[name].told.partition(" 0.000000")[0] in err
