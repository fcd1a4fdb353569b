"""What runs on a GPU alone, as far as it can be followed without one: the order of things, and names."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'calibration'")

from calibration import llama, machine, run, timing
from calibration.machine import Machine
from calibration.timing import CallTimer, GraphTimer, Work, timed
from cost_models import GPUS
from cost_models.profile import Device

CUDA = torch.device("cuda", 0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pretended CUDA that writes down what it is asked to do; a replay takes 3 ms."""
    told: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            told.append("event")

        def elapsed_time(self, other: Any) -> float:
            return 3.0

    class Graph:
        def replay(self) -> None:
            told.append("replay")

    @contextmanager
    def graph(which: Any) -> Any:
        told.append("capture")
        yield
        told.append("captured")

    @contextmanager
    def stream(which: Any) -> Any:
        yield

    quiet = SimpleNamespace(wait_stream=lambda other: None)
    for name, value in {"Event": Event, "CUDAGraph": Graph, "graph": graph, "stream": stream,
                        "Stream": lambda device: quiet, "current_stream": lambda device: quiet,
                        "synchronize": lambda device: told.append("wait")}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    return told


def test_a_graph_is_captured_once_and_the_cache_is_flushed_before_each_replay(
        log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    timer = GraphTimer(torch.device("cpu"), 100)
    monkeypatch.setattr(timer, "_other", SimpleNamespace(max=lambda: log.append("flush")))
    work = Work([lambda: log.append("a"), lambda: log.append("b")], 1)
    assert timer.samples(work, 2) == [1500.0, 1500.0]    # 3 ms over two calls
    assert log == ["a", "b", "a", "b", "capture", "a", "b", "captured", "replay",
                   "flush", "event", "replay", "event", "flush", "event", "replay", "event", "wait"]


@pytest.mark.parametrize(("name", "memory", "known"), [
    ("NVIDIA H100 80GB HBM3", 85_000_000_000, "h100-80"), ("NVIDIA H200", 150_000_000_000, "h200"),
    ("NVIDIA A100-SXM4-40GB", 42_400_000_000, "a100-40"), ("NVIDIA A100 80GB PCIe", 85_100_000_000, "a100-80"),
    ("NVIDIA GeForce RTX 4090", 25_300_000_000, "rtx-4090"), ("NVIDIA L40S", 47_800_000_000, "l40s"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 102_000_000_000, "rtx-pro-6000"),
    ("NVIDIA GeForce RTX 3060", 12_000_000_000, "nvidia-geforce-rtx-3060"),
    ("NVIDIA H100 NVL", 100_500_000_000, "nvidia-h100-nvl"),
    ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 10_200_000_000, "nvidia-a100-sxm4-80gb-mig-1g-10gb"),
])
def test_a_gpu_gets_the_name_that_batchsim_has_for_it(name: str, memory: int, known: str,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(
        name=name, major=9, minor=0, total_memory=memory, multi_processor_count=100))
    monkeypatch.setattr(machine, "_nvidia_smi", lambda *fields: ["580.1", "1200 MHz", "2619 MHz", "1980 MHz"])
    found = Machine(CUDA, "bf16", memory, 50 << 20)
    assert found.gpu_id() == known
    assert known in GPUS or known.startswith("nvidia-")
    described = found.describe()
    assert (described.capability, described.driver) == ("9.0", "580.1")
    assert described.clocks == "SM 1200 MHz of 1980 MHz, memory 2619 MHz"


def test_a_machine_without_nvidia_smi_has_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(machine.subprocess, "run", missing)
    assert machine._nvidia_smi("driver_version", "clocks.sm") == [None]


def test_where_nothing_compiles_the_plain_functions_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_nothing(function: Any, dynamic: bool) -> Any:
        def fails(*_: Any) -> None:
            raise RuntimeError("no C compiler")
        return fails

    monkeypatch.setattr(torch, "compile", compile_nothing)
    monkeypatch.setattr(torch, "ones", lambda *size, dtype, device: torch.zeros(*size, dtype=dtype))
    assert llama.pointwise.__wrapped__("cuda") is llama.PLAIN
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    assert llama.pointwise.__wrapped__("cuda").fused


def test_a_call_on_a_gpu_is_waited_for(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "perf_counter_ns", iter([100, 350]).__next__)
    assert timed(lambda: log.append("call"), CUDA) == 250
    assert log == ["call", "wait"]


def test_what_is_flushed_is_a_multiple_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(torch, "ones", lambda size, dtype, device: flushed.append(size))
    for cache in (10_000_000, 100_000_000):
        assert isinstance(Machine(CUDA, "bf16", 10**10, cache).timer(), GraphTimer)
    assert flushed == [200_000_000, 400_000_000]
    assert isinstance(Machine(torch.device("cpu"), "fp32", 0, 0).timer(), CallTimer)


def test_the_first_gpu_is_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    facts = SimpleNamespace(total_memory=7, L2_cache_size=3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda at: facts)
    monkeypatch.setattr(machine, "torch", SimpleNamespace(
        cuda=torch.cuda, device=torch.device, backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace()))))
    assert machine.machine("cuda") == Machine(CUDA, "bf16", 7, 3)


def test_what_nvidia_smi_says_is_taken_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    told = SimpleNamespace(stdout="580.1, 1200 MHz\nanother\n")
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: told)
    assert machine._nvidia_smi("driver_version", "clocks.sm") == ["580.1", "1200 MHz"]


def test_a_cpu_that_tells_nothing_still_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(machine.Path, "read_text", missing)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(machine.os, "sysconf", missing)
    assert (machine._cpu_name(), machine._cpu_memory()) == ("riscv64", 0)


def test_a_profile_says_how_a_gpu_was_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: Any = SimpleNamespace(path=SimpleNamespace(name="varlen"), error=0.002)
    job: Any = SimpleNamespace(machine=Machine(CUDA, "bf16", 1, 1), grid=SimpleNamespace(repeats=7))
    for fused, words in ((True, "is fused;"), (False, "is not fused;")):
        monkeypatch.setattr(run, "pointwise", lambda kind, fused=fused: SimpleNamespace(fused=fused))
        told = run._method(job, chosen)
        assert told.startswith("a CUDA graph of several calls on buffers that take turns, L2 flushed before each")
        assert f"{words} 7 samples in each of" in told
        assert "attention: varlen, error 0.002 against float64" in told


def test_clocks_are_told_before_and_after() -> None:
    assert run._clocks(Device("a", clocks="1"), Device("a", clocks="2")) == "before: 1; after: 2"
    assert run._clocks(Device("a"), Device("a")) is None
