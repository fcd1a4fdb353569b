"""Documents that somebody gave: what is too large, too deep or too long for a line is refused or cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator import documents
from simulator.documents import DEEPEST, bytes_of, json_of, quoted
from simulator.errors import InputError


def test_a_file_may_be_as_large_as_the_bound_and_no_larger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_BYTES", 1 << 20)
    file = tmp_path / "a.json"
    file.write_bytes(b"x" * (1 << 20))
    assert len(bytes_of(file, "it")) == 1 << 20
    file.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(InputError, match=r"^it: holds more than 1 MiB$"):
        bytes_of(file, "it")


def test_json_may_be_nested_as_deep_as_the_bound_and_no_deeper() -> None:
    assert json_of("[" * DEEPEST + "]" * DEEPEST, "it")
    with pytest.raises(InputError, match=r"^it: is not JSON \(nested too deeply\)$"):
        json_of('{"a":' * DEEPEST + "[]" + "}" * DEEPEST, "it")


def test_a_value_is_quoted_on_one_short_line() -> None:
    assert quoted("a\nb") == r"'a\nb'"
    assert quoted("x" * 99, most=5) == "'xxxx..."
    assert quoted(10 ** 5000) == "a number of thousands of digits", "which repr refuses to spell"
