"""The command as a process: closed pipes, odd terminals, the shell's questions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from simulator.cli.main import main
from simulator.cli.stopping import Stopped, stoppable

ROOT = Path(__file__).resolve().parents[2]
BATCHSIM = f"{sys.executable} -m simulator.cli"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in a bare environment; `batchsim` is the command, measured if this process is."""
    script = f'batchsim() {{ {BATCHSIM} "$@"; }}; {line}'
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **measured, **environment})


@pytest.mark.parametrize("command", ["list traces --json", "list cost-models --verbose", "--help"])
def test_a_closed_pipe_is_no_error(command: str) -> None:
    run = shell(f"batchsim {command} | true; echo ${{PIPESTATUS[0]}}")
    assert (run.stdout, run.stderr) == ("141\n", "")


def test_a_closed_stdout_is_no_error() -> None:
    run = shell("batchsim list gpus --json >&-")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("words", ["2>&-", "2>/dev/full"])
def test_words_that_nobody_can_read_change_nothing(words: str) -> None:
    run = shell(f"batchsim run --policy sch --num-prompts 5 {words}")
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "")


def test_a_thread_hears_no_signals_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(main(["list", "gpus", "--json"])))
    thread.start()
    thread.join()
    out, err = capsys.readouterr()
    assert (statuses, err) == ([0], "")
    assert "h100-80" in out


def test_a_full_disk_is_one_line() -> None:
    run = shell("batchsim list gpus >/dev/full")
    assert (run.returncode, run.stderr) == (2, "batchsim: No space left on device\n")


def test_no_terminal_no_home_no_unicode() -> None:
    bare = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1",
            "HOME": "/nonexistent", "COLUMNS": "20"}
    table = shell("batchsim list gpus", **bare)
    assert (table.returncode, table.stderr) == (0, "")
    assert table.stdout.isascii()
    complaint = shell("batchsim run --policy $'sch\\u00f6n' --num-prompts 5", **bare)
    assert complaint.returncode == 2
    assert complaint.stderr.count("\n") == 1


@pytest.mark.parametrize(("typed", "offered"), [
    ("batchsim run --policy v", ["vllm", "vllm-0"]),
    ("batchsim compare --policies static,v", ["static,vllm", "static,vllm-0"]),
    ("batchsim run --gpu h", ["h100-80", "h200"]),
    ("batchsim trace describe azure-co", ["azure-code-2023", "azure-conv-2023"]),
    ("batchsim list g", ["gpus"]),
    ("batchsim bench sat", ["saturated-256", "saturated-128"]),
    ("batchsim run --quiet --tra", ["--trace-events", "--trace", "--trace-format"]),
])
def test_the_shell_completes(typed: str, offered: list[str]) -> None:
    words = typed.split()
    run = shell("batchsim", _BATCHSIM_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
    assert (run.stdout.split(), run.stderr) == (offered, "")


def test_a_completion_script_for_the_shell() -> None:
    run = shell("batchsim --show-completion")
    assert run.returncode == 0
    assert "_BATCHSIM_COMPLETE=complete_bash" in run.stdout


ASKS = """
import signal
from simulator.policies import Vllm

class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

class Asks(Vllm):
    def plan(self, queue, memory, now):
        global asked
        if not globals().get("asked"):
            asked = True
            {way}
        return super().plan(queue, memory, now)
"""


@pytest.mark.parametrize("way", [
    "signal.raise_signal(signal.SIGTERM)", "Dying()",
    "\n            try:\n                signal.raise_signal(signal.SIGTERM)\n            except BaseException:\n"
    "                pass"], ids=["raised", "where no error gets through", "swallowed"])
def test_who_asks_a_process_to_end_is_heard(way: str, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS.format(way=way))
    run = shell(f"batchsim run --num-prompts 5 --policy {tmp_path}/asks.py:Asks > {tmp_path}/out")
    assert (run.returncode, run.stderr) == (143, "batchsim: stopped by SIGTERM\n")


def test_whom_nohup_starts_goes_on(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS.format(way="signal.raise_signal(signal.SIGHUP)"))
    line = f"batchsim run --num-prompts 5 --policy {tmp_path}/asks.py:Asks > {tmp_path}/out"
    assert shell(line).returncode == 129
    unheard = shell(f"trap '' HUP; {line}")
    assert (unheard.returncode, unheard.stderr) == (0, "")


def test_what_python_ignores_besides_is_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: heard.append(told.exc_value))
    with stoppable(whole=False) as stopper:
        stopper.listen()
        sys.unraisablehook(SimpleNamespace(exc_value=(other := ValueError("while an object was freed"))))
        stopper.stopped = Stopped(signal.SIGTERM)
        monkeypatch.delattr(signal, "setitimer")    # as on Windows, where nothing can ask again
        sys.unraisablehook(SimpleNamespace(exc_value=stopper.stopped))
    assert heard == [other]


@pytest.mark.parametrize(("backend", "status", "told"), [
    ("svg", 0, "written: {}"), ("paper", 2, "batchsim: matplotlib does not know MPLBACKEND=paper: unset it")])
def test_a_backend_that_matplotlib_does_not_know_is_refused(backend: str, status: int, told: str,
                                                            tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    run = shell(f"batchsim trace describe azure-conv-2023 --limit 20 -o {path}", MPLBACKEND=backend)
    assert (run.returncode, run.stderr) == (status, f"{told.format(path)}\n")
    assert path.exists() is (status == 0)
