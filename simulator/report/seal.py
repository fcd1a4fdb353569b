"""Seal: a last line by which a page is known to be as it was written, wherever it lies. It knows no page."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

LINE = "<!-- batchsim wrote what is above this line; its SHA-256 is {} -->\n"
SEAL = re.compile(re.escape(LINE).replace(r"\{\}", "([0-9a-f]{64})").encode() + rb"\Z")


def sealed(text: str) -> str:
    """The text and its seal."""
    return text + LINE.format(sha256(text.encode()).hexdigest())


def is_intact(path: Path) -> bool:
    """Whether the file is there, was sealed, and was not changed since."""
    content = path.read_bytes() if path.is_file() else b""
    found = SEAL.search(content)
    return found is not None and sha256(content[:found.start()]).hexdigest() == found[1].decode()
