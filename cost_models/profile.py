"""A calibrated profile: the coefficients of a machine and a model as a readable YAML file.

All durations in milliseconds, all errors in percent. A profile says where its numbers come from; it knows
nothing of how they are put together (that is ``regimes``).
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from cost_models.base import CostModelError, choose
from cost_models.shapes import BYTES
from cost_models.strict import build, parse_yaml, read_yaml

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Origin:
    """Where the coefficients come from."""

    source: str
    date: str


@dataclass(frozen=True)
class Decode:
    """base + per_seq x sequences + per_context_token x their context; errors of the fit where known."""

    base_ms: float
    per_seq_ms: float
    per_context_token_ms: float
    mape_percent: float | None = None
    p95_percent: float | None = None


@dataclass(frozen=True)
class Prefill:
    """base + per_token x new tokens + per_token_sq x ((prior + new)^2 - prior^2), summed over the chunks."""

    base_ms: float
    per_token_ms: float
    per_token_sq_ms: float
    mape_percent: float | None = None
    p95_percent: float | None = None


@dataclass(frozen=True)
class Mixed:
    """How a step with both differs: whose base is paid (once), and factors on the two attention terms."""

    origin: str
    """``transferred`` from other hardware, or ``measured``."""
    base: str
    """``decode`` or ``prefill``."""
    decode_attention: float
    prefill_attention: float
    mape_percent: float | None = None
    p95_percent: float | None = None

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("transferred", "measured"))
        choose("base", self.base, ("decode", "prefill"))


@dataclass(frozen=True)
class Host:
    """Host time of a step: h0 + h1 x sequences."""

    origin: str
    """``assumed`` or ``measured``."""
    h0_ms: float
    h1_ms: float = 0.0

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("assumed", "measured"))


@dataclass(frozen=True)
class Range:
    """Where the coefficients were measured, each bound as (lowest, highest), inclusive."""

    decodes: tuple[int, int] | None = None
    context: tuple[int, int] | None = None
    """Context tokens summed over the decodes."""
    chunk_tokens: tuple[int, int] | None = None
    """New prompt tokens of a step."""
    prior_tokens: tuple[int, int] | None = None
    """Tokens already there, summed over the chunks."""


@dataclass(frozen=True)
class Profile:
    """One model on one GPU type in one layout. The field names are the keys of the YAML file."""

    schema_version: int
    name: str
    model: str
    gpu: str
    tensor_parallel_size: int
    dtype: str
    kv_dtype: str
    origin: Origin
    decode: Decode
    prefill: Prefill
    mixed: Mixed
    host: Host
    range: Range | None = None

    def __post_init__(self) -> None:
        if self.tensor_parallel_size < 1:
            raise CostModelError("tensor_parallel_size must be at least 1, got 0")
        choose("dtype", self.dtype, BYTES)
        choose("kv_dtype", self.kv_dtype, BYTES)

    @property
    def layout(self) -> str:
        """Model, GPU, dtypes and number of GPUs, as printed."""
        return layout(self.model, self.gpu, self.dtype, self.kv_dtype, self.tensor_parallel_size)


def layout(model: str, gpu: str, dtype: str, kv_dtype: str, tensor_parallel_size: int) -> str:
    """How a deployment is named in messages."""
    return f"{model} on {tensor_parallel_size} x {gpu} ({dtype}, KV {kv_dtype})"


def read_profile(path: str | Path) -> Profile:
    """The profile in a YAML file. Raises CostModelError, one line, for whatever is wrong with it."""
    return _profile(read_yaml(Path(path)), str(path))


@cache
def bundled_profiles() -> dict[str, Profile]:
    """The profiles that come with the package, by name."""
    found = {}
    for entry in sorted(files("cost_models").joinpath("profiles").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            profile = _profile(parse_yaml(entry.read_text(encoding="utf-8"), entry.name), entry.name)
            found[profile.name] = profile
    return found


def _profile(data: object, where: str) -> Profile:
    version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else SCHEMA_VERSION
    if type(version) is not int or version != SCHEMA_VERSION:
        raise CostModelError(f"{where}: unknown schema_version {version!r} (known: {SCHEMA_VERSION})")
    return build(Profile, data, where)
