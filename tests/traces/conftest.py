"""Small files and traces that the tests of this folder share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from traces import Trace

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes text or bytes, as they are, to a new file."""

    def write(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def tiny() -> Trace:
    """Four requests, 1 s, 2 s and 4 s apart."""
    return Trace(
        "tiny",
        arrival=[0, 10**9, 3 * 10**9, 7 * 10**9],
        prompt=[10, 20, 30, 40],
        output=[1, 2, 3, 4],
        max_tokens=[5, 5, 5, 5],
        tenant=("a", "b", "a", "b"),
        hash_ids=((1,), (1,), (2,), (3,)),
        hash_block=512,
    )
