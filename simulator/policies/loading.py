"""Loading a policy of one's own from a Python file, named FILE.py:CLASS. It knows no policy and runs none.

A module beside the file belongs to the process from when a policy first runs with it: Python runs it once, maybe later,
and no other content of it is taken. It cannot know that a module was imported by others before that, and edited since.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import ClassVar, get_origin

from simulator.documents import bytes_of, short_digest
from simulator.errors import InputError, choose, file_changed
from simulator.policies.base import Policy
from simulator.policies.beside import beside

LOG = logging.getLogger(__name__)
"""Hears the path of each file before its code is run, at level INFO."""
PREFIX = "batchsim_policy_"
"""Modules made from policy files are called so; it tells a user's fault from ours."""
_RUN: dict[str, str] = {}
"""Digests of modules beside policy files, by where they really are, as this process runs them."""
_BEHIND: dict[str, dict[str, str]] = {}
"""By the name of a policy file's module, the digests of those beside it, by path in its folder, as they were then."""


def load_policy(reference: str, digest: str | None = None) -> type[Policy]:
    """The policy class that "my_file.py:MyPolicy" names; a class without a `name` is called by its own.

    An unchanged file is run once, however often it is named. With the `digest` of its content, what was run of that
    content is taken, and no other content is run. Raises InputError, one line, for whatever is wrong with the file or
    the class, and FileChanged for other content.
    """
    file, _, wanted = reference.rpartition(":")
    if not (file.endswith(".py") and wanted):
        raise InputError(f"policy '{reference}' names no class: write FILE.py:CLASS, such as my_file.py:MyPolicy")
    module = _module_of(Path(file), digest)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
           and isinstance(value, type)]
    kind = getattr(module, wanted, None)
    if kind is None:
        raise InputError(_absent(file, wanted, own))
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise InputError(f"{file}: {wanted} is not a policy: make it a subclass of simulator.policies.Policy")
    _check(file, kind)
    if "name" not in vars(kind):
        kind.name = kind.__name__
    return kind


def fault_in_policy_file(error: BaseException) -> str | None:
    """Where in a loaded policy file an error arose, and which, in one line; None if it passed through none."""
    at: BaseException | None = error
    while at is not None:    # SimPy raises a copy, and says from what
        for frame, line in reversed(list(traceback.walk_tb(at.__traceback__))):
            if str(frame.f_globals.get("__name__", "")).startswith(PREFIX):
                return f"{frame.f_code.co_filename}, line {line}: {_told(error)}"
        at = at.__cause__
    return None


def content_run(kind: type[Policy]) -> str:
    """The digest of the content that was run, for a class from a policy file."""
    return kind.__module__.removeprefix(PREFIX).partition("_")[0]


def code_run(file: str, digest: str) -> dict[str, str]:
    """Digests by path of a policy file and of the modules beside it, as this process ran them; empty if it did not."""
    behind = _BEHIND.get(_name(Path(file), digest))
    folder = Path(file).parent
    return {} if behind is None else {file: digest, **{str(folder / each): found for each, found in behind.items()}}


def digest_run(path: str) -> str | None:
    """The digest with which this process runs a module beside a policy file; None if it has run none with it."""
    return _RUN.get(os.path.realpath(path))


def _module_of(path: Path, digest: str | None) -> ModuleType:
    """The file, run as a module; the one at hand while the file is unchanged, or if it is the one asked for."""
    if digest is None or _name(path, digest) not in sys.modules:
        source = bytes_of(path, f"policy file {path}")
        found = short_digest(source)
        if digest not in (None, found):
            raise file_changed(str(path))
        digest = found
        if _name(path, found) not in sys.modules:
            _run(path, source, _name(path, found))
    return sys.modules[_name(path, digest)]


def _name(path: Path, digest: str) -> str:
    """What the module is called: after the content, so that what was run can be told, and after the place."""
    return f"{PREFIX}{digest}_{short_digest(os.fsencode(path.resolve()))}"


def _run(path: Path, source: bytes, name: str) -> None:
    """Run a file's source, by its own `__future__`. It must be in sys.modules meanwhile: dataclasses look there."""
    LOG.info("%s", path)
    behind = _BEHIND[name] = _digests(path)
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        _give_up(path, name)
        raise InputError(f"policy file {_where(path, error)}: {_told(error)}") from error
    except BaseException:
        _give_up(path, name)
        raise
    _RUN.update(_really(path, behind))


def _digests(path: Path) -> dict[str, str]:
    """Of the modules beside a policy file. Raises FileChanged for one that this process runs as it was before."""
    found = {}
    for each in beside(str(path)):
        with suppress(InputError):
            found[os.path.relpath(each, path.parent)] = short_digest(bytes_of(each))
        if digest_run(each) not in (None, found.get(os.path.relpath(each, path.parent))):
            raise file_changed(each, "run")
    return found


def _give_up(path: Path, name: str) -> None:
    """Forget a file that could not be run, but for the modules beside it that were."""
    del sys.modules[name]
    files = (getattr(each, "__dict__", {}).get("__file__") for each in list(sys.modules.values()))
    there = {os.path.realpath(file) for file in files if isinstance(file, str)}
    _RUN.update((place, digest) for place, digest in _really(path, _BEHIND.pop(name)).items() if place in there)


def _really(path: Path, behind: Mapping[str, str]) -> dict[str, str]:
    return {os.path.realpath(path.parent / each): digest for each, digest in behind.items()}


def _where(path: Path, error: BaseException) -> str:
    """The file, and the line where it went wrong if that is known."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == str(path):
            line = number
    return f"{path}, line {line}" if line else str(path)


def _told(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _absent(file: str, wanted: str, own: list[str]) -> str:
    if not own:
        return f"{file} has no class '{wanted}', nor any other: write a subclass of simulator.policies.Policy"
    try:
        return choose(f"class of {file}", wanted, own)
    except ValueError as error:
        return str(error)


def _check(file: str, kind: type[Policy]) -> None:
    """Refuse at once what would fail later in a way that is harder to read."""
    if kind.plan is Policy.plan:
        raise InputError(f"{file}: {kind.__name__} does not say what to run: write its plan(self, queue, memory, now)")
    knobs = [name for name, hint in vars(kind).get("__annotations__", {}).items() if not _is_class_wide(hint)]
    if knobs and "__dataclass_fields__" not in vars(kind):
        raise InputError(f"{file}: {kind.__name__} has knobs ({', '.join(knobs)}) and is no dataclass: "
                         "put @dataclass above it")


def _is_class_wide(hint: object) -> bool:
    return "ClassVar" in hint if isinstance(hint, str) else hint is ClassVar or get_origin(hint) is ClassVar
