"""A profile that is not right gets one line that says where and what."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from cost_models import CostModelError, bundled_profiles, read_profile

ROUND: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("round.yaml").read_text())


def changed(**changes: Any) -> dict[str, Any]:
    """ROUND with some keys replaced: ``decode__base_ms=1`` reaches into a section, a value of ... removes."""
    data = copy.deepcopy(ROUND)
    for path, value in changes.items():
        *sections, key = path.split("__")
        place = data
        for section in sections:
            place = place[section]
        if value is ...:
            del place[key]
        else:
            place[key] = value
    return data


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def complaint(path: Path) -> str:
    with pytest.raises(CostModelError) as caught:
        read_profile(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    profile = read_profile(written(tmp_path / "p.yaml", changed(range={"decodes": [1, 64]})))
    assert profile.name == "round"
    assert profile.decode.per_context_token_ms == 0.001
    assert profile.decode.mape_percent is None
    assert profile.range is not None
    assert profile.range.decodes == (1, 64)
    assert profile.range.context is None


def test_an_unquoted_date_stays_as_written(tmp_path: Path) -> None:
    text = yaml.safe_dump(ROUND).replace("'2026-01-31'", "2026-01-31")
    assert "date: 2026-01-31" in text
    assert read_profile(written(tmp_path / "p.yaml", text)).origin.date == "2026-01-31"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prefill": ...}, ": missing 'prefill' (needed: prefill)"),
        ({"schema_version": ...}, ": missing 'schema_version' (needed: schema_version)"),
        ({"schema_version": 2}, ": unknown schema_version 2 (known: 1)"),
        ({"schema_version": "1"}, ": unknown schema_version '1' (known: 1)"),
        ({"schema_version": True}, ": unknown schema_version True (known: 1)"),
        ({"tensor_parallel_size": 0}, ": tensor_parallel_size must be at least 1, got 0"),
        ({"tensor_parallel_size": 1.5}, ": tensor_parallel_size must be a whole number of at least 0, got 1.5"),
        ({"dtype": "fp16"}, ": unknown dtype 'fp16': did you mean 'bf16'? (known: bf16, fp8)"),
        ({"name": ""}, ": name must be text, got ''"),
        ({"host": None}, ": host: expected a mapping of keys to values, got nothing"),
        ({"decode": [1, 2]}, ": decode: expected a mapping of keys to values, got list"),
        ({"decode__per_seq_ms": ...}, ": decode: missing 'per_seq_ms' (needed: per_seq_ms)"),
        ({"decode__per_seq_ms": -0.1}, ": decode: per_seq_ms must be a number of at least 0, got -0.1"),
        ({"decode__base_ms": float("nan")}, ": decode: base_ms must be a number of at least 0, got nan"),
        ({"decode__base_ms": float("inf")}, ": decode: base_ms must be a number of at least 0, got inf"),
        ({"decode__base_ms": True}, ": decode: base_ms must be a number of at least 0, got True"),
        (
            {"decode__base_ms": "1e-5"},
            ": decode: base_ms must be a number of at least 0 (write 1.0e-5, not 1e-5), got '1e-5'",
        ),
        (
            {"prefill__per_tokn_ms": 1},
            ": prefill: unknown key 'per_tokn_ms': did you mean 'per_token_ms'? "
            "(known: base_ms, per_token_ms, per_token_sq_ms, mape_percent, p95_percent)",
        ),
        ({"mixed__base": "both"}, ": mixed: unknown base 'both' (known: decode, prefill)"),
        (
            {"mixed__origin": "transfered"},
            ": mixed: unknown origin 'transfered': did you mean 'transferred'? (known: transferred, measured)",
        ),
        ({"host__origin": "felt"}, ": host: unknown origin 'felt' (known: assumed, measured)"),
        ({"range": {"decodes": 3}}, ": range: decodes must be two whole numbers [lowest, highest], got 3"),
        ({"range": {"decodes": [9, 1]}}, ": range: decodes must be [lowest, highest], got [9, 1]"),
    ],
)
def test_a_wrong_entry(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    assert complaint(written(tmp_path / "p.yaml", changed(**changes))) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": expected a mapping of keys to values, got nothing"),
        ("- 1\n- 2\n", ": expected a mapping of keys to values, got list"),
        ("decode: {base_ms: 1", ", line 1: not valid YAML: expected ',' or '}', but got '<stream end>'"),
        ("a: 1\nb: 2\na: 3\n", ", line 1: not valid YAML: key 'a' appears twice"),
        ("name: 9999-99-99\n", ": missing 'schema_version'"),
        ("[" * 5000, ": not valid YAML: unreadable"),
        (
            "!!python/object/apply:os.getcwd []",
            ", line 1: not valid YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object/apply:os.getcwd'",
        ),
    ],
)
def test_text_that_is_no_profile(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(written(tmp_path / "p.yaml", text)).startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert complaint(tmp_path / "absent.yaml") == ": No such file or directory"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"\xff\xfe\x00\x01")
    assert complaint(tmp_path / "p.yaml") == ": not a text file"


def test_bundled_names_say_what_they_are_for() -> None:
    for name, profile in bundled_profiles().items():
        parts = "" if profile.tensor_parallel_size == 1 else f"tp{profile.tensor_parallel_size}-"
        assert name == f"{profile.model}-{profile.gpu}-{parts}{profile.dtype}"
