"""A command line, taken apart into the engine that it starts and its flags. It knows no flag's meaning."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NamedTuple

from simulator.documents import text_of
from simulator.errors import InputError
from simulator.launching.engine import Arity, Engine, Known
from simulator.scenarios.yaml_text import parse

PYTHON = re.compile(r"(.*/)?python[0-9.]*")
SHELL = re.compile(r"[|&;<]+|[12&]?>.*|#.*")
"""Words that end a command."""
MOST_CHARACTERS = 1 << 17
"""Of a command line."""


class Command(NamedTuple):
    """An engine, the words behind its name, and those in front of it."""

    engine: Engine
    words: list[str]
    before: list[str]


class Given(NamedTuple):
    """A flag as it was written, what is known of it, and its values; nothing is known of a word that stands alone."""

    written: str
    known: Known | None
    values: list[str]


def command_of(line: str, engines: Sequence[Engine]) -> Command:
    """Find the engine's command in a line, which may begin with variables or `docker run`. Raises InputError."""
    words = _words(line)
    for engine in engines:
        for start in map(str.split, engine.starts):
            if (at := _find(words, start)) is not None:
                before = [word for word in words[:at] if not PYTHON.fullmatch(word)]
                return Command(engine, _first(words[at + len(start):]), before)
    for engine in engines:
        for at, word in enumerate(words):
            if word[0] not in "-./~" and any(image in word for image in engine.images):
                return Command(engine, _first(words[at + 1:]), words[:at + 1])
    known = ", ".join(engine.starts[0].removeprefix("-m ") for engine in engines)
    raise InputError(f"--from: starts no engine that is known here ({known})")


def _words(line: str) -> list[str]:
    """The words of a line, which may be broken with backslashes."""
    if len(line) > MOST_CHARACTERS:
        raise InputError(f"--from: is longer than a command line can be ({MOST_CHARACTERS:,} characters)")
    try:
        return [word for word in shlex.split(re.sub(r"\\\r?\n", " ", line)) if word]
    except ValueError as error:
        raise InputError(f"--from: cannot be read as a command line ({error}): put quotes around it") from None


def _first(words: Sequence[str]) -> list[str]:
    """The words up to the end of the first command."""
    return list(takewhile(lambda word: not SHELL.fullmatch(word), words))


def _find(words: Sequence[str], start: Sequence[str]) -> int | None:
    """Where these words follow each other, programs without the folder that they are in."""
    names = [word.rpartition("/")[2] for word in words]
    return next((at for at in range(len(names)) if names[at:at + len(start)] == start), None)


def flags_of(engine: Engine, words: Sequence[str]) -> Iterator[Given]:
    """The flags of a command one by one, those of a YAML file before the others, so that the latter win."""
    given = list(_split(engine, words))
    files = [flag for flag in given if flag.known and flag.known.name in engine.files]
    for file in files:
        yield from _in_file(engine, file.values[0])
    yield from (flag for flag in given if flag not in files)


def _split(engine: Engine, words: Sequence[str]) -> Iterator[Given]:
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if not _is_flag(word):
            yield Given(word, None, [word])
            continue
        written, equals, value = word.partition("=")
        known = _known(engine, written)
        yield Given(written, known, [value] if equals else list(_values(written, known.arity, rest)))


def _values(written: str, arity: Arity, rest: deque[str]) -> Iterator[str]:
    """Take a flag's values from the words that follow it."""
    if arity == "switch":
        if rest and rest[0].lower() in ("true", "false"):
            yield rest.popleft()
        return
    if not rest or rest[0].startswith("--"):
        raise InputError(f"--from: {written} needs a value")
    yield rest.popleft()
    while arity == "many" and rest and not _is_flag(rest[0]):
        yield rest.popleft()


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-[0-9.]+", word)


def _known(engine: Engine, written: str) -> Known:
    """What is known of a flag; one that the engine does not have is refused with the nearest."""
    if known := engine.lookup(written):
        return known
    near = get_close_matches(written.lstrip("-").replace("_", "-"), engine.names(), n=1)
    hint = f"did you mean --{near[0]}? If not, " if near else ""
    raise InputError(f"--from: {engine.name} has no flag {written} that is known here: {hint}leave it out")


def _in_file(engine: Engine, path: str) -> Iterator[Given]:
    """The flags that a YAML file holds, by the same names."""
    content = parse(text_of(path, f"--from: {path}"), f"--from: {path}").content
    if not isinstance(content, dict):
        raise InputError(f"--from: {path}: must map flags to values")
    for name, value in _flattened(content):
        written = f"--{name}"
        values = value if isinstance(value, list) else [value]
        yield Given(f"{written} of {path}", _known(engine, written), [_text(each) for each in values])


def _flattened(content: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}", value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


