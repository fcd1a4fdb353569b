"""A calibrated profile: what was found on one machine with one model, as a readable YAML file.

The dataclasses are the file: field names are its keys, a field without a default is needed. Durations in
milliseconds (kernel tables and raw timings in microseconds), errors in percent. A profile says where its
numbers come from; it does not know how they are put together (that is ``regimes`` and ``table``).
"""

from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self

from cost_models.base import CostModelError, choose, shown
from cost_models.fits import Fit
from cost_models.shapes import BYTES, ModelSpec
from cost_models.specs import MODELS
from cost_models.strict import build, located, parse_yaml, read_yaml

SCHEMA_VERSION = 2
DTYPES = (*BYTES, "fp32")
"""What a profile may have been measured in; a CPU measures in fp32."""
MIXED = {"measured": "measured", "transferred": "put together by factors from other GPUs"}
"""Where the times of mixed steps come from, in words, by `Fit.mixed_origin`."""


@dataclass(frozen=True)
class Origin:
    """Where the numbers come from."""

    kind: str
    """``measured`` on this device by ``batchsim calibrate``, or ``derived`` from published figures."""
    source: str
    date: str
    method: str | None = None
    seed: int | None = None
    tuned: str | None = None
    """Which numbers were tuned on a recorded run, and on what part of it; None if none was."""

    def __post_init__(self) -> None:
        choose("kind", self.kind, ("measured", "derived"))


@dataclass(frozen=True)
class Shape:
    """The shape of the model that was timed, before it was divided among GPUs."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int

    @classmethod
    def of(cls, model: ModelSpec) -> Self:
        """That of a model."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls)})

    def check(self, model: ModelSpec) -> None:
        """Raise CostModelError if the model has another shape."""
        for size, found in vars(self).items():
            if found != (known := getattr(model, size)):
                raise CostModelError(f"model_shape: {size} {found} is not that of {model.name} ({known})")


@dataclass(frozen=True)
class Device:
    """The GPU, or CPU, as it named itself."""

    name: str
    capability: str | None = None
    memory_bytes: int | None = None
    sms: int | None = None
    driver: str | None = None
    clocks: str | None = None


@dataclass(frozen=True)
class Software:
    """Versions of what ran."""

    python: str | None = None
    torch: str | None = None
    cuda: str | None = None
    triton: str | None = None
    engine: str | None = None


@dataclass(frozen=True)
class Host:
    """Host time of a step: h0 + h1 x sequences."""

    origin: str
    """``assumed`` or ``measured``."""
    h0_ms: float
    h1_ms: float = 0.0

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("assumed", "measured"))


ASSUMED_HOST = Host("assumed", 1.5)
"""Of an engine of which only kernels were timed: an assumption of ours."""


@dataclass(frozen=True)
class RequestOverhead:
    """Time that a request spends outside the engine's steps: API, tokenising and back. It delays no step."""

    origin: str
    """``assumed`` or ``measured``."""
    overhead_ms: float

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("assumed", "measured"))


@dataclass(frozen=True)
class RawRow:
    """One timed point."""

    kernel: str
    dims: tuple[int, ...]
    median_us: float
    iqr_us: float
    min_us: float
    n: int
    bytes: float | None = None
    flops: float | None = None
    flag: str | None = None
    """What is odd about it, such as a time below what its bytes need."""


@dataclass(frozen=True)
class Profile:
    """One model on one GPU type in one layout."""

    schema_version: int
    name: str
    model: str
    gpu: str
    tensor_parallel_size: int
    dtype: str
    kv_dtype: str
    model_shape: Shape
    origin: Origin
    fit: Fit
    host: Host
    request: RequestOverhead | None = None
    page_size: int | None = None
    device: Device | None = None
    software: Software | None = None
    raw: tuple[RawRow, ...] = ()

    def __post_init__(self) -> None:
        for term in ("name", "model", "gpu"):
            if not getattr(self, term).isprintable():
                raise CostModelError(f"{term} must be one printable line, got {getattr(self, term)!r}")
        if self.tensor_parallel_size < 1:
            raise CostModelError(f"tensor_parallel_size must be at least 1, got {self.tensor_parallel_size}")
        choose("dtype", self.dtype, DTYPES)
        choose("kv_dtype", self.kv_dtype, DTYPES)
        if self.model in MODELS:
            self.model_shape.check(MODELS[self.model])

    @property
    def layout(self) -> str:
        """Model, GPU, dtypes and number of GPUs, as printed."""
        return layout(self.model, self.gpu, self.dtype, self.kv_dtype, self.tensor_parallel_size)

    @property
    def request_overhead(self) -> int:
        """The overhead of a request in ns; 0 where none is stated."""
        return round(self.request.overhead_ms * 1e6) if self.request else 0

    @property
    def provenance(self) -> str:
        """Source and date, and what is not measured, in one line."""
        tuned = f"; tuned: {self.origin.tuned}" if self.origin.tuned else ""
        return (f"{self.origin.source} ({self.origin.date}); mixed steps {MIXED[self.fit.mixed_origin]}; "
                f"host {self.host.h0_ms:g} ms a step {self.host.origin}{tuned}")


def layout(model: str, gpu: str, dtype: str, kv_dtype: str, tensor_parallel_size: int) -> str:
    """How a deployment is named in messages."""
    return f"{model} on {tensor_parallel_size} x {gpu} ({dtype}, KV {kv_dtype})"


def read_profile(path: str | Path) -> Profile:
    """The profile in a YAML file. Raises CostModelError, one line, for whatever is wrong with it."""
    return profile_of(read_yaml(Path(path)), str(path))


@cache
def bundled_profiles() -> dict[str, Profile]:
    """The profiles that come with the package, by name."""
    found = {}
    for entry in sorted(files("cost_models").joinpath("profiles").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            profile = profile_of(parse_yaml(entry.read_text(encoding="utf-8"), entry.name), entry.name)
            found[profile.name] = profile
    return found


def profile_of(data: object, where: str) -> Profile:
    """The profile in a mapping; ``where`` names it in the error."""
    version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else SCHEMA_VERSION
    if type(version) is not int or version != SCHEMA_VERSION:
        with located(where):
            raise CostModelError(f"unknown schema_version {shown(version)} (known: {SCHEMA_VERSION})")
    return build(Profile, data, where)
