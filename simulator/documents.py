"""Documents that somebody gave: the bytes or the text of a file, and the JSON in a text. All that is wrong is one line.

A file is a regular one, up to a size; text is UTF-8; JSON says no name twice and is not nested without end. It knows no
format.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from stat import S_ISREG
from typing import Any

from simulator.errors import InputError

MOST_BYTES = 256 << 20
"""Of a file; the tokens of some hundred thousand requests, one by one, are as many."""
DEEPEST = 100
"""Levels of JSON; more than any of ours has, and fewer than a walk through it can bear."""

DIGITS = 16
"""Of a digest."""

Place = str | os.PathLike[str]


def bytes_of(path: Place, where: str = "") -> bytes:
    """The content of a file. Raises InputError, which begins with `where`, or with the path."""
    where = where or readable(path)
    try:
        if not S_ISREG(os.stat(path).st_mode) and not Path(path).is_dir():
            raise InputError(f"{where}: is no regular file: give one, such as a copy of what comes from there")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: is no name that a file can have") from None
    if len(content) > MOST_BYTES:
        raise InputError(f"{where}: holds more than {MOST_BYTES >> 20} MiB")
    return content


def short_digest(content: bytes) -> str:
    """The first digits of the SHA-256, by which files are told apart."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def text_of(path: Place, where: str = "") -> str:
    """The text of a file, every line with a plain end, without a byte order mark. Raises InputError."""
    return decoded(bytes_of(path, where), where or readable(path))


def decoded(content: bytes, where: str) -> str:
    """The text that these bytes are. Raises InputError."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{where}: is no text in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def document_of(path: Place, where: str = "", *, nan: bool = False) -> Any:
    """What a file of JSON says; see `json_of`."""
    return json_of(text_of(path, where), where or readable(path), nan=nan)


def json_of(text: str, where: str, *, nan: bool = False) -> Any:
    """What a text of JSON says. Raises InputError for none, and for what nobody could write again: half a character.

    Args:
        text: One value.
        where: What the error begins with.
        nan: Take NaN and infinities, which JSON has not, but other tools write.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=None if nan else _constant)
        if text.count("[") + text.count("{") > DEEPEST:
            _check_depth(found)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise InputError(f"{where}: is not JSON (nested too deeply)") from None
    except ValueError as error:
        raise InputError(f"{where}: is not JSON ({_reason(error)})") from None
    return found


def readable(path: Place) -> str:
    """A path in characters: a byte that is none stands as \\xff."""
    return os.fsencode(path).decode(errors="backslashreplace")


def quoted(value: object, most: int = 60) -> str:
    """A value on one line, cut where it is long; nothing in it that a terminal would obey."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"    # which Python does not spell
    return text if len(text) <= most else f"{text[:most]}..."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        left = iter(found)    # in the order in which they first come, so the first that is out of step came before
        twice = next(name for name, _ in pairs if name != next(left, None))
        raise ValueError(f"name {quoted(twice)} appears twice")
    return found


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _check_depth(found: Any) -> None:
    level = [found]
    for _ in range(DEEPEST):
        level = [part for each in level for part in _parts(each) if isinstance(part, dict | list)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _reason(error: ValueError) -> str:
    """Python speaks of its own settings where a number has thousands of digits, and of codecs for half a character."""
    if isinstance(error, UnicodeEncodeError):
        return "it holds half a character"
    return "a number has thousands of digits" if "integer string conversion" in str(error) else str(error)
