"""The device that is calibrated: what it calls itself, how much it holds, and what runs on it. It times nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from calibration.timing import CallTimer, GraphTimer, Timer
from cost_models import GPUS
from cost_models.profile import Device, Software
from simulator.errors import InputError, choose

DEVICES = ("cuda", "cpu")
FLUSH = 4
"""Times the L2 cache that is read before a replay; at least `LEAST_FLUSH` bytes."""
LEAST_FLUSH = 200_000_000
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
MARKS = ("A100", "H100", "H200", "B200", "L40S", "4090", "PRO 6000")
"""What the names of GPUs that batchsim knows have in them, and how it calls those."""
ALIKE = 0.05
"""By which share of its memory a device may differ from the GPU of its name: drivers and ECC take some of it."""


@dataclass(frozen=True)
class Machine:
    """One device to be calibrated.

    Attributes:
        torch_device: As torch knows it.
        dtype: "bf16" on a GPU, "fp32" on a CPU.
        memory_bytes: What it holds in all.
        cache_bytes: Its last-level cache; 0 where that is not known.
    """

    torch_device: torch.device
    dtype: str
    memory_bytes: int
    cache_bytes: int

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype as torch knows it."""
        return DTYPES[self.dtype]

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.torch_device.type == "cuda"

    def timer(self) -> Timer:
        """What times kernels on it."""
        if not self.is_gpu:
            return CallTimer(self.torch_device)
        return GraphTimer(self.torch_device, max(FLUSH * self.cache_bytes, LEAST_FLUSH))

    def describe(self) -> Device:
        """What it is, with its clocks at this moment."""
        if not self.is_gpu:
            return Device(_cpu_name(), memory_bytes=self.memory_bytes)
        facts = torch.cuda.get_device_properties(self.torch_device)
        driver, *clocks = _nvidia_smi("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm")
        shown = f"SM {clocks[0]} of {clocks[2]}, memory {clocks[1]}" if len(clocks) == 3 else None
        return Device(facts.name, f"{facts.major}.{facts.minor}", facts.total_memory, facts.multi_processor_count,
                      driver, shown)

    def gpu_id(self) -> str:
        """How batchsim calls it: the GPU it knows by that name with as much memory, else the device's own name.

        A part of a GPU and a kin of other memory are thus other devices; a PCIe card is not told from an SXM module.
        """
        name = self.describe().name
        marks = [mark for mark in MARKS if mark in name]
        for gpu in GPUS.values():
            named = bool(marks) and marks[0].lower().replace(" ", "-") in gpu.name
            if named and abs(gpu.device_bytes - self.memory_bytes) <= ALIKE * gpu.device_bytes:
                return gpu.name
        return "-".join("".join(char if char.isalnum() else " " for char in name.lower()).split())


def machine(device: str) -> Machine:
    """The machine of that name. Raises InputError where there is none."""
    choose("device", device, DEVICES)
    if device == "cpu":
        torch.set_num_threads(1)
        return Machine(torch.device("cpu"), "fp32", _cpu_memory(), 0)
    if not torch.cuda.is_available():
        raise InputError(f"torch {torch.__version__} sees no CUDA device: give --device cpu, or install a torch with "
                         "CUDA and check the driver")
    torch.backends.cuda.matmul.allow_tf32 = False
    found = torch.cuda.get_device_properties(0)
    return Machine(torch.device("cuda", 0), "bf16", found.total_memory, getattr(found, "L2_cache_size", 0))


def software() -> Software:
    """Versions of what runs."""
    return Software(platform.python_version(), str(torch.__version__), torch.version.cuda, _version("triton"),
                    f"batchsim {_version('batchsim')}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _nvidia_smi(*fields: str) -> list[str | None]:
    """Answers of nvidia-smi; None where it is not there. It is only asked, and never sets anything."""
    try:
        told = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "-i", "0"],
                              capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return [None]
    return [field.strip() for field in told.stdout.splitlines()[0].split(",")]


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cpu_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
