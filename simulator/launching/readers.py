"""From the text of a flag to a value: the spellings that engines share. It knows no flag."""

from __future__ import annotations

import re
from math import inf

from simulator.launching.engine import NotModelled

UNITS = {"k": 10 ** 3, "m": 10 ** 6, "g": 10 ** 9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def whole(text: str) -> int:
    """A whole number."""
    return int(text)


def number(text: str) -> float:
    """A number."""
    return float(text)


def share(text: str) -> float:
    """A part of something, above 0 and at most 1."""
    if not 0 < (found := float(text)) <= 1:
        raise ValueError(text)
    return found


def human(text: str) -> int:
    """A whole number, also as 32k (thousands) or 32K (powers of two)."""
    found = re.fullmatch(r"([0-9.]+)([kmgKMG])", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else int(text)


def length(text: str) -> int:
    """A model length; engines that fit it to the memory by themselves are not modelled."""
    if text in ("-1", "auto"):
        raise NotModelled("a length that the engine fits to its memory: the model's is taken")
    return human(text)


def truth(text: str) -> bool:
    """True or false."""
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


def untruth(text: str) -> bool:
    """The opposite."""
    return not truth(text)


def or_unbounded(text: str) -> float:
    """A whole number, where -1 and 0 lift the bound."""
    return inf if int(text) <= 0 else int(text)


def weights(text: str) -> str:
    """A dtype of weights: all floats of 16 bits are alike here."""
    if text in ("auto", "bfloat16", "float16", "half", "bf16", "fp16"):
        return "bf16"
    raise NotModelled(f"weights in {text}: bf16 is taken")


def quantized(text: str) -> str:
    """A quantization of weights."""
    if text in ("fp8", "w8a8_fp8", "modelopt_fp8", "fbgemm_fp8", "ptpc_fp8"):
        return "fp8"
    raise NotModelled(f"{text} weights: bf16 is taken, which is larger and slower")


def cache(text: str) -> str:
    """A dtype of the KV cache."""
    if text in ("auto", "bfloat16", "bf16", "float16"):
        return "bf16"
    if text.startswith("fp8"):
        return "fp8"
    raise NotModelled(f"KV cache in {text}: bf16 is taken")


def sizes(text: str) -> str:
    """Batch sizes between blanks or commas."""
    return ",".join(str(int(word)) for word in re.split(r"[ ,]+", text.strip()))


def one(text: str, what: str) -> int:
    """Nothing but 1 is modelled."""
    if int(text) != 1:
        raise NotModelled(what)
    return 1
