"""Facts about the bundled models and GPUs, and how to name one.

A model's shape is the one its authors publish; its parameter count follows from it. A GPU's peaks are the
maker's datasheet, its memory is what the driver reports to a process. Nothing here is a measured duration.
"""

from collections.abc import Mapping
from pathlib import Path

from cost_models.base import CostModelError, choose
from cost_models.shapes import GpuSpec, ModelSpec
from cost_models.strict import build, read_yaml

MODELS: dict[str, ModelSpec] = {
    spec.name: spec
    for spec in (
        ModelSpec(
            name="llama-3.1-8b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            head_dim=128,
            ffn=14336,
            vocab=128256,
            max_model_len=131072,
            source="published config.json of meta-llama/Llama-3.1-8B",
        ),
        ModelSpec(
            name="llama-3.1-70b",
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            head_dim=128,
            ffn=28672,
            vocab=128256,
            max_model_len=131072,
            source="published config.json of meta-llama/Llama-3.1-70B",
        ),
        ModelSpec(
            name="llama-2-7b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=32,
            head_dim=128,
            ffn=11008,
            vocab=32000,
            max_model_len=4096,
            source="published config.json of meta-llama/Llama-2-7b-hf",
        ),
        ModelSpec(
            name="llama-2-70b",
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            head_dim=128,
            ffn=28672,
            vocab=32000,
            max_model_len=4096,
            source="published config.json of meta-llama/Llama-2-70b-hf",
        ),
        ModelSpec(
            name="opt-13b",
            layers=40,
            hidden=5120,
            heads=40,
            kv_heads=40,
            head_dim=128,
            ffn=20480,
            vocab=50272,
            max_model_len=2048,
            gated_mlp=False,
            tied_embeddings=True,
            all_biases=True,
            position_rows=2050,
            source="published config.json of facebook/opt-13b",
        ),
        ModelSpec(
            name="mistral-7b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            head_dim=128,
            ffn=14336,
            vocab=32768,
            max_model_len=32768,
            source="published config.json of mistralai/Mistral-7B-v0.3",
        ),
        ModelSpec(
            name="qwen2.5-7b",
            layers=28,
            hidden=3584,
            heads=28,
            kv_heads=4,
            head_dim=128,
            ffn=18944,
            vocab=152064,
            max_model_len=32768,
            qkv_bias=True,
            source="published config.json of Qwen/Qwen2.5-7B-Instruct",
        ),
    )
}

_SHEET = "datasheet; memory as reported by the driver"

GPUS: dict[str, GpuSpec] = {
    spec.name: spec
    for spec in (
        # nominal bytes, device bytes, bandwidth, bf16 and fp8 FLOP/s, link
        GpuSpec("a100-40", 40e9, 42_500_000_000, 1.555e12, 312e12, None, 300e9, f"A100 SXM 40GB {_SHEET}"),
        GpuSpec("a100-80", 80e9, 85_000_000_000, 2.039e12, 312e12, None, 300e9, f"A100 SXM 80GB {_SHEET}"),
        GpuSpec("h100-80", 80e9, 85_000_000_000, 3.35e12, 989e12, 1979e12, 450e9, f"H100 SXM 80GB {_SHEET}"),
        GpuSpec("h200", 141e9, 150_100_000_000, 4.8e12, 989e12, 1979e12, 450e9, f"H200 SXM {_SHEET}"),
        GpuSpec("b200", 180e9, 191_500_000_000, 8.0e12, 2250e12, 4500e12, 900e9, f"B200 in HGX {_SHEET}"),
        GpuSpec("l40s", 48e9, 47_800_000_000, 0.864e12, 362e12, 733e12, 32e9, f"L40S {_SHEET}"),
        GpuSpec("rtx-4090", 24e9, 25_300_000_000, 1.008e12, 165e12, 330e12, 32e9, f"RTX 4090 {_SHEET}"),
        GpuSpec("rtx-pro-6000", 96e9, 102_000_000_000, 1.792e12, 504e12, 1008e12, 64e9, f"RTX PRO 6000 {_SHEET}"),
    )
}


def model_spec(which: str | Path | Mapping[str, object] | ModelSpec) -> ModelSpec:
    """A bundled model by name, or a shape of one's own from a mapping or a YAML file (``*.yaml``, ``*.yml``).

    The keys are the fields of ModelSpec. An unknown name or key, or a bundled name with another shape, raises
    CostModelError.

    >>> model_spec("llama-3.1-8b").kv_bytes_per_token()
    131072
    """
    if isinstance(which, str) and which in MODELS:
        return MODELS[which]
    if isinstance(which, Mapping):
        return _own_shape(build(ModelSpec, which, "model"))
    if isinstance(which, ModelSpec):
        return _own_shape(which)
    if str(which).endswith((".yaml", ".yml")):
        return _own_shape(build(ModelSpec, read_yaml(Path(which)), str(which)))
    return MODELS[choose("model", str(which), MODELS)]


def _own_shape(spec: ModelSpec) -> ModelSpec:
    if not spec.name.isprintable():
        raise CostModelError(f"name of the model must be one printable line, got {spec.name!r}")
    if MODELS.get(spec.name, spec) != spec:
        raise CostModelError(f"'{spec.name}' is a bundled model of another shape: give yours another name")
    return spec


def gpu_spec(which: str | GpuSpec) -> GpuSpec:
    """A bundled GPU by name; a GpuSpec of one's own passes through. An unknown name raises CostModelError."""
    if not isinstance(which, GpuSpec):
        return GPUS[choose("GPU", which, GPUS)]
    if GPUS.get(which.name, which) != which:
        raise CostModelError(f"'{which.name}' is a bundled GPU with other specs: give yours another name")
    return which
