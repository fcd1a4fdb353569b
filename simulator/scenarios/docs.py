"""What the docstrings of Scenario and of the policies say of each field. It knows no field."""

from __future__ import annotations

import inspect
import re
from typing import Any

ENTRY = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {5,}.*)*)", re.MULTILINE)
WORDS = {"None": "null", "True": "true", "False": "false"}
"""Python's words as YAML has them."""


def described(kind: type[Any]) -> dict[str, str]:
    """By field, what the list of attributes says of it, one line each, base classes first."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        _, mark, listed = (inspect.cleandoc(each.__doc__ or "")).partition("Attributes:\n")
        if mark and each.__module__ != "builtins":
            for entry in ENTRY.finditer(listed):
                text = " ".join(entry["text"].split())
                found |= dict.fromkeys(entry["names"].split(", "), _in_yaml(text))
    return found


def _in_yaml(text: str) -> str:
    return re.sub(r"\b(None|True|False)\b", lambda word: WORDS[word[0]], text)
