"""Mutants of a good file: some of its bytes changed, or one value in its structure, or nothing of it left.

`mutant` takes any source of chance that has the methods of `random.Random`, so that hypothesis can draw and shrink.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from parsers import Parser

from cost_models import CostModelError
from simulator.errors import InputError
from traces import TraceError

LONGEST = 3000
"""Characters of a refusal; the names of all that is known may be many."""
BITS = (b"", b"\r", b"\r\n", b"\n\n", b"NaN", b"-Infinity", b"1e999", b"9" * 40, b"9" * 5000, b"-1", b"null", b"[]",
        b"{}", b'"', b"\0", b"\x1b[31m", b"0", b",", b"../x", "\u2028".encode(), b"{1: 1e400}", b"true", b"\xff",
        b"&a ", b"*a", b"<<: ", b"!!int ''", b"!!timestamp x", b"!!binary x", b": ", b"- ", b"#", b"\xef\xbb\xbf",
        b"\\ud800")
"""What is put into a file."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, -0.0, 2**31, 2**53 + 1, 2**60, 2**63, -2**63 - 1, 10**400, 1e308, -1e308, 5e-324,
    math.nan, math.inf, -math.inf, "", "x", "1", "inf", "nan", "\x1b[31m", "[red]", "a\nb", "\0", "../../x", "x" * 500,
    "é\u2028\u202e", "/etc/passwd", [], [[]], [None], [1, "x"], {}, {"": 0}, {"x": {"x": []}}, [{}], list(range(300)))
"""What stands in the place of a value."""


def mutant(content: bytes, chance: Random) -> bytes:
    """The content with something changed."""
    kind = chance.randrange(10)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    if kind < 4 or (changed := _restructured(content, chance)) is None:
        return _cut(content, chance)
    return changed


def _cut(content: bytes, chance: Random) -> bytes:
    """Some bytes at some places replaced, or all after a place gone."""
    for _ in range(1 + chance.randrange(3)):
        at, length = chance.randrange(len(content) + 1), chance.randrange(8)
        content = content[:at] + chance.choice(BITS) + content[at + length:]
    return content[:chance.randrange(len(content) + 1)] if chance.randrange(4) == 0 else content


def _restructured(content: bytes, chance: Random) -> bytes | None:
    """One value in the structure replaced, taken away or given twice; None for what has none."""
    for read, write in ((json.loads, _json), (_lines, _jsonl), (_yaml, _as_yaml)):
        try:
            found = read(content.decode())
        except (ValueError, yaml.YAMLError):
            continue
        if isinstance(found, dict | list) and found:
            return write(_changed(found, chance)).encode("utf-8", "surrogatepass")
    return None


def _json(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False)


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def _jsonl(found: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in found) if isinstance(found, list) else json.dumps(found)


def _yaml(text: str) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def _as_yaml(found: Any) -> str:
    return str(yaml.safe_dump(found, allow_unicode=True))


def _changed(found: Any, chance: Random) -> Any:
    """The same with one place changed, each level of the structure as likely as the others."""
    if not isinstance(found, dict | list) or not found or chance.randrange(5) == 0:
        return chance.choice(ODD)
    key = chance.choice(list(found) if isinstance(found, dict) else range(len(found)))
    copy: Any = dict(found) if isinstance(found, dict) else list(found)
    kind = chance.randrange(8)
    if kind == 0:
        del copy[key]
    elif kind == 1 and isinstance(copy, dict):
        copy[chance.choice(["", "x", "\x1b[31m", "a\nb", "../x", "__class__", "x" * 300])] = chance.choice(ODD)
    elif kind == 1:
        copy.append(copy[key])
    else:
        copy[key] = _changed(found[key], chance)
    return copy


def outcome(parser: Parser, content: bytes) -> str:
    """What comes of a file with this content: "parsed", or the refusal; anything else is an assertion that fails."""
    with TemporaryDirectory() as folder:
        return attempt(parser, parser.laid(Path(folder), content)).replace(folder, "")


def attempt(parser: Parser, path: Path) -> str:
    """What comes of reading a path: "parsed", or the refusal, which is one plain line; no warning, no other error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            parser.read(path)
        except (InputError, TraceError, CostModelError) as refusal:
            told = str(refusal)
            assert told.isprintable(), f"not one plain line: {told!r}"
            assert len(told) < LONGEST, f"{len(told)} characters"
            return told
    return "parsed"
