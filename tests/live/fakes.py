"""Stand-ins for packages that vLLM imports on its way to the scheduler and never calls there. It knows no vLLM.

Only packages that are absent are faked: with all of them installed, `install` does nothing. Whatever is asked of a
stand-in is a class that accepts anything; exceptions are exceptions, decorators give back what they decorate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

UNUSED = frozenset({
    "PIL", "aiohttp", "anthropic", "blake3", "cachetools", "cbor2", "cloudpickle", "compressed_tensors", "cpuinfo",
    "cv2", "depyf", "einops", "fastapi", "gguf", "httpx", "huggingface_hub", "ijson", "jsonschema", "lark",
    "llguidance", "lmformatenforcer", "mcp", "mistral_common", "model_hosting_container_standards", "multidict",
    "numba", "openai", "openai_harmony", "opentelemetry", "orjson", "outlines_core", "partial_json_parser",
    "prometheus_client", "prometheus_fastapi_instrumentator", "psutil", "pybase64", "pythonjsonlogger", "ray",
    "requests", "safetensors", "scipy", "sentencepiece", "setproctitle", "soundfile", "starlette", "tiktoken",
    "tokenizers", "torchaudio", "torchvision", "tqdm", "transformers", "urllib3", "uvicorn", "uvloop", "watchfiles",
    "xgrammar", "yaml", "zmq"})


class _Anything(type):
    """A class whose attributes, items, unions and instances are stand-ins as well."""

    def __getattr__(cls, name: str) -> Any:
        return _made(name)

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __call__(cls, *args: Any, **named: Any) -> Any:
        decorates = len(args) == 1 and not named and isinstance(args[0], FunctionType | type)
        return args[0] if decorates else super().__call__()


def _made(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name.endswith(("Error", "Exception", "Exit")):
        return type(name, (Exception,), {})
    return _Anything(name, (), {"__getattr__": lambda self, of: _made(of), "__call__": lambda self, *a, **k: type(self),
                                "__iter__": lambda self: iter(()), "__bool__": lambda self: False,
                                "__get_pydantic_core_schema__": classmethod(_schema)})


def _schema(cls: type, source: object, handler: object) -> Any:
    from pydantic_core import core_schema
    return core_schema.any_schema()


class _Module(ModuleType):
    __version__ = "999"

    def __getattr__(self, name: str) -> Any:
        made = _made(name)
        setattr(self, name, made)
        return made


class _Finder(MetaPathFinder, Loader):
    def __init__(self, absent: frozenset[str]) -> None:
        self._absent = absent

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self._absent else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> frozenset[str]:
    """Fake the unused packages that are not here; returns their names."""
    absent = frozenset(name for name in UNUSED if find_spec(name) is None)
    sys.meta_path.insert(0, _Finder(absent))
    return absent
