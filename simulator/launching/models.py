"""Names under which models are published, as the shapes that are bundled. It knows names, no weights."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from cost_models import MODELS
from simulator.errors import InputError
from simulator.launching.engine import Fields
from simulator.launching.hf_config import fields_of_folder

SUFFIXES = re.compile(r"-(instruct|chat|hf|it|base|dynamic|kv|bf16|fp8|v0\.[0-9]|turbo|tput)(?=-|$)")
"""Parts of a name that change no shape."""
SAME_SHAPE: dict[str, tuple[str, int | None]] = {
    "llama-3.3-70b": ("llama-3.1-70b", None),
    "llama-3-8b": ("llama-3.1-8b", 8192),
    "llama-3-70b": ("llama-3.1-70b", 8192),
}
"""Other models of a bundled shape, and their length where it is another one."""


def _has_config(folder: Path) -> bool:
    try:
        return folder.joinpath("config.json").is_file()
    except (OSError, ValueError):
        return False    # a name that no folder can have


def fields_of(published: str) -> Fields:
    """Model, and dtype and length where the name tells them. Raises InputError for a model that is not bundled."""
    if published.endswith((".yaml", ".yml")):
        return {"model": published}
    if _has_config(folder := Path(published)):
        return fields_of_folder(folder)
    name = published.rstrip("/").rpartition("/")[2].lower().replace("_", "-").removeprefix("meta-")
    stem = SUFFIXES.sub("", name)
    model, length = SAME_SHAPE.get(stem, (stem, None))
    if model not in MODELS:
        near = get_close_matches(model, MODELS, n=1)
        hint = f"the nearest is {near[0]}; " if near else ""
        raise InputError(f"--from: no shape of '{published}' is bundled ({', '.join(MODELS)}): {hint}give --model with "
                         "one of them, or with a YAML file that has its shape; a folder with its config.json will do")
    found: Fields = {"model": model}
    if "fp8" in name.split("-"):
        found["dtype"] = "fp8"
    return found | ({} if length is None else {"max_model_len": length})
