"""Step time from the kernel tables that NVIDIA's package ``aiconfigurator-core`` ships (extra ``aic``).

Its engine is asked once for a grid of kernels of vLLM, which then is an ordinary ``table`` and is kept in the
user's cache: a simulation never waits for it. Its times are of kernels only, so a host time is assumed; its mixed
steps are sums, so the factors of other cards are transferred.
It does not know models and GPUs that the package has no data of.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cost_models.base import CostModelError, choose
from cost_models.cache import cached
from cost_models.kernels import TRANSFERRED
from cost_models.profile import ASSUMED_HOST, SCHEMA_VERSION, Profile, Shape, layout, profile_of
from cost_models.shapes import GpuSpec, ModelSpec
from cost_models.table import Table

PACKAGE = "aiconfigurator-core"
MODELS = {"llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B", "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B"}
"""What the package calls our models."""
SYSTEMS = {"a100-80": "a100_sxm", "h100-80": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "l40s": "l40s",
           "rtx-pro-6000": "rtx_pro_6000_server"}
"""What the package calls our GPUs."""
QUANTISED = {"bf16": "bfloat16", "fp8": "fp8"}

EDGES = (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 4096,
         6144, 8192, 16384)
TOKENS = tuple(sorted({1, 2, 4, 8, *EDGES, *(edge + 8 for edge in EDGES)}))
SEQUENCES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
CONTEXT = tuple(2**power for power in range(4, 18))
CHUNKS = (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384)
PRIOR = (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)

Times = Mapping[str, float]
"""Milliseconds of a step by kind of kernel, over all layers."""


def aiconfigurator(model: ModelSpec, gpu: GpuSpec, dtype: str, kv_dtype: str, tensor_parallel_size: int) -> Table:
    """The table of this deployment, from the cache or from the package.

    Raises CostModelError without the package, or where the package has no data of the deployment.
    """
    try:
        release = version(PACKAGE)
    except PackageNotFoundError:
        raise CostModelError("'aiconfigurator' needs an extra package: pip install 'batchsim[aic]'") from None
    choose("model of aiconfigurator", model.name, MODELS)
    choose("GPU of aiconfigurator", gpu.name, SYSTEMS)
    name = f"aiconfigurator-{release}-{model.name}-{gpu.name}-tp{tensor_parallel_size}-{dtype}-kv-{kv_dtype}"

    def query() -> dict[str, Any]:
        engine = _engine(model, gpu, dtype, kv_dtype, tensor_parallel_size)
        return _profile(engine, release, model, gpu, dtype, kv_dtype, tensor_parallel_size)

    def read(data: object) -> Profile:
        return profile_of(data, name)

    return Table(cached(f"{name}.json", read, query))


def _engine(model: ModelSpec, gpu: GpuSpec, dtype: str, kv_dtype: str, tensor_parallel_size: int) -> Any:
    """The package's engine. It tells of every stand-in among its own tables, which is of no use here."""
    logging.getLogger("aiconfigurator_core").setLevel(logging.ERROR)
    from aiconfigurator_core.sdk.engine import EngineHandle
    try:
        return EngineHandle.compile(MODELS[model.name], SYSTEMS[gpu.name], "vllm", tp_size=tensor_parallel_size,
                                    gemm_quant_mode=QUANTISED[dtype], kvcache_quant_mode=QUANTISED[kv_dtype],
                                    fmha_quant_mode="bfloat16")
    except Exception as error:
        asked = layout(model.name, gpu.name, dtype, kv_dtype, tensor_parallel_size)
        raise CostModelError(f"aiconfigurator has no data of {asked}: {_line(error)}") from None


def _profile(engine: Any, release: str, model: ModelSpec, gpu: GpuSpec, dtype: str, kv_dtype: str,
             tensor_parallel_size: int) -> dict[str, Any]:
    """The profile as its file has it."""
    try:
        table = _table(engine, model.layers)
    except Exception as error:
        asked = layout(model.name, gpu.name, dtype, kv_dtype, tensor_parallel_size)
        raise CostModelError(f"aiconfigurator has no data of {asked}: {_line(error)}") from None
    source = f"{PACKAGE} {release} (Apache-2.0, NVIDIA; {SYSTEMS[gpu.name]}, vllm kernels), kernels only"
    return {"schema_version": SCHEMA_VERSION, "name": "aiconfigurator", "model": model.name, "gpu": gpu.name,
            "tensor_parallel_size": tensor_parallel_size, "dtype": dtype, "kv_dtype": kv_dtype,
            "model_shape": vars(Shape.of(model)),
            "origin": {"kind": "derived", "source": source, "date": f"release {release}"},
            "fit": {"form": "table", "table": table}, "host": vars(ASSUMED_HOST)}


def _table(engine: Any, layers: int) -> dict[str, Any]:
    """All kernels in microseconds, of one layer where there are many."""
    def decode(sequences: int, context: int) -> Times:
        return _by_kind(engine.decode_step_per_op(sequences, context, 2))

    def prefill(new: int, prior: int) -> Times:
        context, _ = engine.run_static_per_op(batch_size=1, isl=prior + new, osl=1, prefix=prior, mode="static_ctx")
        return _by_kind(context)

    def curve(at: Sequence[int], kind: str, ask: Callable[[int], Times], parts: int) -> dict[str, Any]:
        return {"at": list(at), "us": [ask(x)[kind] * 1e3 / parts for x in at]}

    def grid(rows: Sequence[int], columns: Sequence[int], ask: Callable[[int, int], Times]) -> list[list[float]]:
        return [[ask(row, column)["attention"] * 1e3 / layers for column in columns] for row in rows]

    return {
        "linear": curve(TOKENS, "linear", lambda tokens: prefill(tokens, 0), layers),
        "head": curve(SEQUENCES, "head", lambda sequences: decode(sequences, CONTEXT[0]), 1),
        "decode_attention": {"sequences": list(SEQUENCES), "context": list(CONTEXT),
                             "us": grid(SEQUENCES, CONTEXT, decode)},
        "prefill_attention": {"tokens": list(CHUNKS), "prior": list(PRIOR), "us": grid(CHUNKS, PRIOR, prefill)},
        "mixed": vars(TRANSFERRED),
        "all_reduce": curve(TOKENS, "all_reduce", lambda tokens: prefill(tokens, 0), 2 * layers),
    }


def _by_kind(ops: Iterable[tuple[str, float, float, str]]) -> Times:
    """Milliseconds of each kind of kernel: the package names its operations ``context_...`` or ``generation_...``."""
    found = dict.fromkeys(("linear", "attention", "head", "all_reduce"), 0.0)
    for name, ms, *_ in ops:
        found[_kind(name.partition("_")[2])] += ms
    return found


def _kind(operation: str) -> str:
    known = {"attention": "attention", "logits_gemm": "head", "ar_1": "all_reduce", "ar_2": "all_reduce"}
    return known.get(operation, "linear")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
