"""The shape of a model from its `config.json`, as Hugging Face has it, for decoders of the Llama kind.

It reads no weights. Mixtures of experts and other attentions have another shape, and are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cost_models import MODELS, CostModelError, ModelSpec, model_spec
from simulator.documents import document_of
from simulator.errors import InputError
from simulator.launching.engine import Fields

ARCHITECTURES = {"LlamaForCausalLM": False, "MistralForCausalLM": False, "Qwen2ForCausalLM": True,
                 "Qwen3ForCausalLM": False}
"""Dense decoders with a gated MLP, and whether their query, key and value projections have biases."""
KEYS = {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
        "ffn": "intermediate_size", "vocab": "vocab_size", "max_model_len": "max_position_embeddings"}


def fields_of_folder(folder: Path) -> Fields:
    """The model in a folder with a config.json, and its dtype if it is quantized. Raises InputError."""
    path = folder / "config.json"
    config = _read(path)
    kind = _first(config.get("architectures"))
    if kind not in ARCHITECTURES:
        raise InputError(f"--from: {path} is of architecture {kind}, whose shape is not known here ("
                         f"{', '.join(ARCHITECTURES)}): give --model with a YAML file that has it")
    quantized = config.get("quantization_config") or None
    method = quantized.get("quant_method", "unnamed") if isinstance(quantized, dict) else quantized
    if method not in (None, "fp8"):
        raise InputError(f"--from: {path} has {method} weights, which are not modelled: give --model and --dtype")
    return {"model": _shape(config, kind, path), **({"dtype": "fp8"} if method else {})}


def _first(architectures: Any) -> str:
    """The first one, in words."""
    return str(architectures[0]) if isinstance(architectures, list) and architectures else "none"


def _read(path: Path) -> dict[str, Any]:
    found = document_of(path, f"--from: {path}")
    if not isinstance(found, dict):
        raise InputError(f"--from: {path} must map names to values")
    return found


def _shape(config: dict[str, Any], kind: str, path: Path) -> ModelSpec:
    """Query heads stand for KV heads where the latter are not told, as in the library."""
    missing = [key for key in KEYS.values() if not isinstance(config.get(key), int)]
    if missing:
        raise InputError(f"--from: {path} lacks {missing[0]}")
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    name = path.resolve().parent.name.lower()
    try:
        return model_spec({
            **{term: config[key] for term, key in KEYS.items()}, "source": f"config.json of {path.parent}",
            "name": f"{name}-local" if name in MODELS else name,
            "kv_heads": config.get("num_key_value_heads") or heads,
            "head_dim": config.get("head_dim") or hidden // max(1, heads),
            "tied_embeddings": bool(config.get("tie_word_embeddings")), "qkv_bias": ARCHITECTURES[kind]})
    except CostModelError as error:
        raise InputError(f"--from: {path}: {error}") from None
