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
    profile = read_profile(written(tmp_path / "p.yaml", changed(fit__range={"decodes": [1, 64]})))
    assert profile.name == "round"
    assert profile.fit.regimes is not None
    assert profile.fit.regimes.decode.per_context_token_ms == 0.001
    assert profile.fit.regimes.decode.per_token_ms == 0
    assert profile.fit.errors.decode is None
    assert profile.fit.range is not None
    assert profile.fit.range.decodes == (1, 64)
    assert profile.fit.range.context is None


def test_an_unquoted_date_stays_as_written(tmp_path: Path) -> None:
    text = yaml.safe_dump(ROUND).replace("'2026-01-31'", "2026-01-31")
    assert "date: 2026-01-31" in text
    assert read_profile(written(tmp_path / "p.yaml", text)).origin.date == "2026-01-31"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fit__regimes__prefill": ...}, ": fit: regimes: missing 'prefill' (needed: prefill)"),
        ({"fit__regimes": ...}, ": fit: form is 'regimes', but 'regimes' is missing"),
        ({"fit__form": "tabel"}, ": fit: unknown form 'tabel': did you mean 'table'? (known: regimes, table)"),
        ({"fit__form": "table"}, ": fit: form is 'table', but 'table' is missing"),
        ({"schema_version": ...}, ": missing 'schema_version' (needed: schema_version)"),
        ({"schema_version": 1}, ": unknown schema_version 1 (known: 2)"),
        ({"schema_version": "2"}, ": unknown schema_version '2' (known: 2)"),
        ({"schema_version": True}, ": unknown schema_version True (known: 2)"),
        ({"tensor_parallel_size": 0}, ": tensor_parallel_size must be at least 1, got 0"),
        ({"tensor_parallel_size": 1.5}, ": tensor_parallel_size must be a whole number of at least 0, got 1.5"),
        ({"dtype": "fp16"}, ": unknown dtype 'fp16': did you mean 'bf16'? (known: bf16, fp8, fp32)"),
        ({"name": ""}, ": name must be text, got ''"),
        ({"name": "a\nb"}, ": name must be one printable line, got 'a\\nb'"),
        ({"gpu": "h100\x1b[2J"}, ": gpu must be one printable line, got 'h100\\x1b[2J'"),
        ({"model_shape__layers": 16}, ": model_shape: layers 16 is not that of llama-3.1-8b (32)"),
        ({"model_shape__layers": ...}, ": model_shape: missing 'layers' (needed: layers)"),
        (
            {"origin__kind": "mesured"},
            ": origin: unknown kind 'mesured': did you mean 'measured'? (known: measured, derived)",
        ),
        ({"host": None}, ": host: expected a mapping of keys to values, got nothing"),
        ({"fit__regimes__decode": [1, 2]}, ": fit: regimes: decode: expected a mapping of keys to values, got list"),
        ({"fit__regimes__decode__base_ms": ...}, ": fit: regimes: decode: missing 'base_ms' (needed: base_ms)"),
        (
            {"fit__regimes__decode__per_seq_ms": -0.1},
            ": fit: regimes: decode: per_seq_ms must be a number of at least 0, got -0.1",
        ),
        (
            {"fit__regimes__decode__base_ms": float("nan")},
            ": fit: regimes: decode: base_ms must be a number of at least 0, got nan",
        ),
        ({"host__h0_ms": float("inf")}, ": host: h0_ms must be a number of at least 0, got inf"),
        ({"host__h0_ms": True}, ": host: h0_ms must be a number of at least 0, got True"),
        ({"host__h0_ms": "1e-5"}, ": host: h0_ms must be a number of at least 0 (write 1.0e-5, not 1e-5), got '1e-5'"),
        (
            {"fit__regimes__prefill__per_tokn_ms": 1},
            ": fit: regimes: prefill: unknown key 'per_tokn_ms': did you mean 'per_token_ms'? (known: base_ms, "
            "weights_ms, per_token_ms, per_seq_ms, per_context_token_ms, per_token_sq_ms, origin)",
        ),
        (
            {"fit__regimes__mixed__origin": "transfered"},
            ": fit: regimes: mixed: unknown origin 'transfered': did you mean 'transferred'? "
            "(known: measured, transferred)",
        ),
        ({"host__origin": "felt"}, ": host: unknown origin 'felt' (known: assumed, measured)"),
        ({"fit__range": {"decodes": 3}}, ": fit: range: decodes must be two whole numbers [lowest, highest], got 3"),
        ({"fit__range": {"decodes": [9, 1]}}, ": fit: range: decodes must be [lowest, highest], got [9, 1]"),
        (
            {"fit__errors": {"decode": {"mape_percent": 1, "p95_percent": 2, "bias_percent": "low"}}},
            ": fit: errors: decode: bias_percent must be a number, got 'low'",
        ),
        (
            {"fit__errors": {"decode": {"mape_percent": 1, "p95_percent": 2, "residuals": [1.1, 0.9]}}},
            ": fit: errors: decode: residuals must be at least two quantiles in ascending order",
        ),
        ({"raw": {"kernel": 3}}, ": raw must be a list, got {'kernel': 3}"),
        ({"raw": [3]}, ": raw[0]: expected a mapping of keys to values, got int"),
        (
            {"request": {"origin": "assumed", "overhead_ms": -1}},
            ": request: overhead_ms must be a number of at least 0, got -1",
        ),
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
        ("[" * 90, ", line 1: not valid YAML: expected the node content"),
        ("[" * 1000, ", line 1: not valid YAML: nested deeper than 100"),
        ("[" * 500_000, ", line 1: not valid YAML: "),
        (
            "!!python/object/apply:os.getcwd []",
            ", line 1: not valid YAML: anchors, aliases and tags (tag:yaml.org,2002:python/object/apply:os.getcwd) are "
            "not read: write the value out",
        ),
    ],
)
def test_text_that_is_no_profile(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(written(tmp_path / "p.yaml", text)).startswith(message)


TINY: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("table.yaml").read_text())


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("linear", {"at": [8, 1], "us": [1, 2]}, "linear: at must be ascending whole numbers, got [8, 1]"),
        ("linear", {"at": [], "us": []}, "linear: at must be ascending whole numbers, got []"),
        ("linear", {"at": [1, 8], "us": [1]}, "linear: us must have a time for each of the 2 knots, got 1"),
        ("linear", {"at": [1, 8], "us": [1, -2]}, "linear: us[1] must be a number of at least 0, got -2"),
        (
            "decode_attention",
            {"sequences": [1, 2], "context": [16], "us": [[1], [1, 2]]},
            "decode_attention: us must have 2 rows (sequences, context) of 1 times",
        ),
        (
            "prefill_attention",
            {"tokens": [16], "prior": [0], "us": [3]},
            "prefill_attention: us[0] must be a list, got 3",
        ),
    ],
)
def test_a_wrong_kernel_table(tmp_path: Path, part: str, value: object, message: str) -> None:
    data = copy.deepcopy(TINY)
    data["fit"]["table"][part] = value
    assert complaint(written(tmp_path / "p.yaml", data)) == f": fit: table: {message}"


def test_all_that_a_calibration_notes_is_read(tmp_path: Path) -> None:
    noted = changed(
        page_size=16, device={"name": "H200", "sms": 132}, software={"torch": "2.11"},
        request={"origin": "assumed", "overhead_ms": 8},
        raw=[{"kernel": "gemm", "dims": [1, 2], "median_us": 3, "iqr_us": 0.1, "min_us": 2, "n": 20, "bytes": 1e6}],
        fit__errors={"decode": {"mape_percent": 1, "p95_percent": 2, "bias_percent": -0.5, "residuals": [0.9, 1, 1.2]}})
    profile = read_profile(written(tmp_path / "p.yaml", noted))
    assert profile.device is not None
    assert (profile.device.sms, profile.raw[0].dims, profile.raw[0].bytes) == (132, (1, 2), 1e6)
    assert profile.fit.errors.decode is not None
    assert profile.fit.errors.decode.bias_percent == -0.5
    assert profile.fit.errors.decode.residuals == (0.9, 1.0, 1.2)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert complaint(tmp_path / "absent.yaml") == ": No such file or directory"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"\xff\xfe\x00\x01")
    assert complaint(tmp_path / "p.yaml") == ": not a text file"


def test_bundled_names_say_what_they_are_for() -> None:
    for name, profile in bundled_profiles().items():
        parts = "" if profile.tensor_parallel_size == 1 else f"tp{profile.tensor_parallel_size}-"
        assert name == f"{profile.model}-{profile.gpu}-{parts}{profile.dtype}"


def test_what_an_editor_leaves_beside_the_bundled_profiles_is_none(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "profiles").mkdir()
    written(tmp_path / "profiles" / "round.yaml", ROUND)
    (tmp_path / "profiles" / "round.yaml~").write_text("name: ro")
    monkeypatch.setattr("cost_models.profile.files", lambda package: tmp_path)
    assert bundled_profiles.__wrapped__().keys() == {"round"}
