"""A command line, taken apart into the engine that it starts and its flags. It knows no flag's meaning."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from simulator.errors import InputError
from simulator.launching.engine import Engine
from simulator.scenarios.yaml_text import parse

PYTHON = re.compile(r"(.*/)?python[0-9.]*")
SHELL = re.compile(r"[|&;<>]|[12]>.*|>.*")
"""Words that end a command."""


class Command(NamedTuple):
    """An engine, the words behind its name, and those in front of it."""

    engine: Engine
    words: list[str]
    before: list[str]


def _program(word: str) -> str:
    """A program without the folder that it is in."""
    return word.rpartition("/")[2]


class Given(NamedTuple):
    """A flag as it was written, its own name, and its values; no flag is a word that stands alone."""

    written: str
    name: str | None
    values: list[str]


def command_of(line: str, engines: Sequence[Engine]) -> Command:
    """Find the engine's command in a line, which may begin with variables or `docker run`. Raises InputError."""
    try:
        words = shlex.split(line.replace("\\\n", " "))
    except ValueError as error:
        raise InputError(f"--from: cannot be read as a command line ({error}): put quotes around it") from None
    ends = [at for at, word in enumerate(words) if SHELL.fullmatch(word)]
    words = words[:ends[0]] if ends else words
    for engine in engines:
        for start in engine.starts:
            begin = start.split()
            for at in range(len(words)):
                if [_program(word) for word in words[at:at + len(begin)]] == begin:
                    before = [word for word in words[:at] if not PYTHON.fullmatch(word)]
                    return Command(engine, words[at + len(begin):], before)
    for engine in engines:
        for at, word in enumerate(words):
            if not word.startswith("-") and any(image in word for image in engine.images):
                return Command(engine, words[at + 1:], words[:at + 1])
    known = ", ".join(engine.starts[0].removeprefix("-m ") for engine in engines)
    raise InputError(f"--from: starts no engine that is known here ({known})")


def flags_of(engine: Engine, words: Sequence[str]) -> Iterator[Given]:
    """The flags of a command one by one, those of a YAML file before the others, so that the latter win."""
    given = list(_split(engine, words))
    for flag in given:
        if flag.name in engine.files:
            yield from _in_file(engine, flag.values[0])
    yield from (flag for flag in given if flag.name not in engine.files)


def _split(engine: Engine, words: Sequence[str]) -> Iterator[Given]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            yield Given(word, None, [word])
            continue
        written, equals, value = word.partition("=")
        name, arity = _known(engine, written)
        if equals:
            yield Given(written, name, [value])
        elif arity == "switch":
            yield Given(written, name, [rest.pop(0)] if rest and rest[0].lower() in ("true", "false") else [])
        elif not rest or rest[0].startswith("--"):
            raise InputError(f"--from: {written} needs a value")
        else:
            count = next((at for at, each in enumerate(rest) if _is_flag(each)), len(rest)) if arity == "many" else 1
            yield Given(written, name, [rest.pop(0) for _ in range(count)])


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-[0-9.]+", word)


def _known(engine: Engine, written: str) -> tuple[str, str]:
    """The flag's own name and its arity; one that the engine does not have is refused with the nearest."""
    name = plain_name(written)
    if written.startswith("-O") and not written.startswith("--"):
        name = "O"    # -O3
    if name in engine.files or engine.aliases.get(name) in engine.files:
        return engine.aliases.get(name, name), "one"
    found = engine.lookup(name) or engine.lookup(name.partition(".")[0])
    if name == engine.model_flag or engine.aliases.get(name) == engine.model_flag:
        return engine.model_flag, "one"
    if found is None:
        _refuse(engine, written, name)
    return found[0], found[2] if "-O" not in written else "switch"


def _refuse(engine: Engine, written: str, name: str) -> NoReturn:
    near = get_close_matches(name, engine.names(), n=1)
    hint = f"did you mean --{near[0]}? If not, " if near else ""
    raise InputError(f"--from: {engine.name} has no flag {written} that is known here: {hint}leave it out")


def plain_name(written: str) -> str:
    """A flag without its dashes, with dashes inside."""
    return written.lstrip("-").replace("_", "-")


def _in_file(engine: Engine, path: str) -> Iterator[Given]:
    """The flags that a YAML file holds, by the same names."""
    try:
        content = parse(Path(path).read_text(encoding="utf-8"), path).content
    except OSError as error:
        raise InputError(f"--from: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"--from: {path}: not a text file") from None
    if not isinstance(content, dict):
        raise InputError(f"--from: {path}: must map flags to values")
    for name, value in _flattened(content):
        written = f"--{name}"
        own, _ = _known(engine, written)
        values = value if isinstance(value, list) else [value]
        yield Given(f"{written} of {path}", own, [_text(each) for each in values])


def _flattened(content: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}", value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


