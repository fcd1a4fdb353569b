import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from traces import TraceError, load

ROWS = "arrival,prompt,output\n0,1,1\n1,2,2\n2,3,3\n"
LOAD = "import traces; print(traces.load({!r}, seed=3).digest)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n \r\n\n", "the file is empty"),
        ("\ufeff", "the file is empty"),
        ("arrival,prompt,output\n", "no usable rows"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens", "no usable rows"),
        ("0,1,1\n1,1,1\n", "line 1: no column names here, only values; add a header"),
        ("2023-11-16 18:15:46.6805900,374,44\n", "line 1: no column names here, only values; add a header"),
        ("\n[\n", "from line 2, row: '[' is not valid JSON (expecting value)"),
        ("[]", "no JSON object with keys in it"),
        ("[1, 2]", "item 1, row: 1 must be a JSON object"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "fetch it with `git lfs pull`"),
        ("{}\n{}\n", "line 1: the JSON object is empty"),
        ("{oops\n", "line 1, row: '{oops' is not valid JSON"),
        ("a;b;c\n", "which column is the prompt? say --columns prompt=NAME (columns: a, b, c)"),
        (b"PK\x03\x04\0\0", "line 1, row: b'PK\\x03\\x04\\x00\\x00' holds a NUL byte; is this a text file?"),
        (b"\xff\xfea\n", "line 1, row: b'\\xff\\xfea\\n' is not UTF-8"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-9], "damaged gzip data"),
        (b"\x1f\x8bnot gzip at all", "damaged gzip data"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_a_file_that_is_no_trace_gets_one_line(write, content, message):
    path = write(content)
    with pytest.raises(TraceError) as refusal:
        load(path)
    assert str(refusal.value).startswith(str(path))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_directory_is_no_trace(tmp_path):
    with pytest.raises(TraceError, match="holds no files"):
        load(tmp_path)
    (tmp_path / "a.csv").write_text(ROWS)
    with pytest.raises(TraceError, match=r"an archive or folder of a\.csv is in no format known here"):
        load(tmp_path)


def test_a_name_that_is_nearly_that_of_a_file_beside_it_names_that_file(tmp_path, monkeypatch):
    (tmp_path / "calls.csv").write_text(ROWS)
    (tmp_path / "calls").mkdir()
    with pytest.raises(TraceError, match=rf"did you mean '{tmp_path}/calls\.csv'\? \(bundled: "):
        load(tmp_path / "call.cvs")
    with pytest.raises(TraceError, match=r"bundled trace '[^?]* \(bundled: "):
        load(tmp_path / "other.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError, match=r"'call\.cvs': did you mean 'calls\.csv'\?"):
        load("call.cvs")
    with pytest.raises(TraceError, match=r"'azure-conv': did you mean 'azure-conv-2023'\?"):
        load("azure-conv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_no_trace(write):
    path = write(ROWS)
    path.chmod(0)
    with pytest.raises(TraceError, match=r"cannot be read \(Permission denied\)"):
        load(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that can be opened and not read")
def test_a_file_that_breaks_while_it_is_read_is_no_trace():
    with pytest.raises(TraceError, match=r"^/proc/self/mem: cannot be read \(Input/output error\)$"):
        load("/proc/self/mem")


@pytest.mark.parametrize("name", ["azure-conv", "azure-conv-2O23", "azure_conv_2023"])
def test_an_unknown_name_gets_the_nearest_one(name):
    with pytest.raises(TraceError, match=r"no trace file or bundled trace '.*': did you mean 'azure-conv-2023'"):
        load(name)


@pytest.mark.parametrize("name", ["", "no/such.csv", "nul\0byte", "x" * 5000, "line\nbreak"])
def test_a_name_that_is_nothing_lists_what_is_bundled(name):
    with pytest.raises(TraceError, match=r"\(bundled: apex-creation, ") as refusal:
        load(name)
    assert "\n" not in str(refusal.value)


def test_a_bundled_name_wins_over_a_file_and_a_path_does_not(write, tmp_path, monkeypatch):
    write(ROWS, "azure-conv-2023")
    monkeypatch.chdir(tmp_path)
    assert len(load("azure-conv-2023")) == 19_366
    assert len(load("./azure-conv-2023", unit="s")) == 3
    assert len(load(Path("azure-conv-2023"), unit="s")) == 3


def test_a_format_that_states_its_unit_takes_no_other(write):
    path = write("arrival_ns,prompt_tokens,output_tokens\n0,1,1\n5,1,1\n")
    with pytest.raises(TraceError, match="the format batchsim states its own unit, ns: leave unit s out, or say "
                                         "--columns arrival=arrival_ns with it"):
        load(path, unit="s")
    assert load(path, unit="ns").arrival.tolist() == [0, 5]
    assert load(path, unit="us", columns={"arrival": "arrival_ns"}).arrival.tolist() == [0, 5000]


def test_options_for_files_do_not_fit_bundled_names():
    with pytest.raises(TraceError, match="is drawn, not read: format, columns, unit, prompts and lenient are for"):
        load("azure-conv-2023", unit="s")


def test_the_format_can_be_named_and_must_exist(write):
    azure = write("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n")
    assert load(azure, format="table", columns={"arrival": "TIMESTAMP"}).digest == load(azure).digest
    with pytest.raises(TraceError, match="unknown trace format 'azur': did you mean 'azure'"):
        load(azure, format="azur")
    with pytest.raises(TraceError, match="no column 'TIMESTAMP' for arrival"):
        load(write(ROWS), format="azure")
    with pytest.raises(TraceError, match="no archive or folder of chunk-N"):
        load(write(ROWS), format="servegen")


def test_the_name_of_the_file_does_not_decide_the_format(write):
    assert load(write(ROWS, "trace.jsonl.gz"), unit="s").digest == load(write(ROWS), unit="s").digest


def test_limit_stops_before_what_is_wrong_further_down(write):
    path = write(ROWS + "oops,0,0\n")
    trace = load(path, unit="s", limit=2)
    assert (trace.prompt.tolist(), trace.report.rows_in) == ([1, 2], 2)
    with pytest.raises(TraceError, match="line 5"):
        load(path, unit="s", limit=4)


def test_limit_counts_good_rows(write):
    trace = load(write("arrival,prompt,output\n0,0,1\n1,1,1\n2,0,1\n3,2,1\n4,0,1\n"), unit="s", limit=2, lenient=True)
    assert trace.prompt.tolist() == [1, 2]
    assert (trace.report.rows_in, len(trace.report.rejected)) == (4, 2)


def test_more_rows_than_any_trace_has_are_refused(write, monkeypatch):
    monkeypatch.setattr("traces.readers.rows.MOST_REQUESTS", 2)
    with pytest.raises(TraceError, match=r"t\.csv: holds more than 2 rows; take fewer with --limit$"):
        load(write(ROWS), unit="s")
    assert len(load(write(ROWS), unit="s", limit=2)) == 2


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_limit_is_a_number_of_rows(write, limit):
    with pytest.raises(TraceError, match="limit must be 1 or more rows"):
        load(write(ROWS), unit="s", limit=limit)


def test_limit_and_seed_apply_to_stand_ins():
    assert load("azure-code-2023", limit=10).digest == load("azure-code-2023").head(10).digest
    assert load("azure-code-2023", seed=1).digest != load("azure-code-2023").digest


@pytest.mark.parametrize("seed", [-1, 1.5, None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(TraceError, match="a seed must be a whole number of 0 or more"):
        load("apex-lmsys", seed=seed)


def test_source_and_name_tell_where_a_trace_is_from(write):
    path = write(ROWS)
    trace = load(path, unit="s")
    assert (trace.name, trace.source, trace.licence) == ("t.csv", str(path), "")


def test_many_blank_lines_before_the_header_do_no_harm(write):
    assert len(load(write("\n" * 300_000 + ROWS), unit="s")) == 3


def test_the_same_seed_gives_the_same_trace_under_any_hash_seed():
    root = Path(__file__).resolve().parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", LOAD.format("mooncake-synthetic")],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "4242")
    }
    assert digests == {load("mooncake-synthetic", seed=3).digest}


@pytest.mark.parametrize(("unit", "meant"), [
    ("sec", "s"), ("Seconds", "s"), ("msec", "ms"), ("milliseconds", "ms"), ("usec", "us"), ("\u00b5s", "us"),
    ("nanoseconds", "ns"), ("week", None)])
def test_a_unit_that_is_written_out_is_understood(unit: str, meant: str | None) -> None:
    with pytest.raises(TraceError) as refused:
        load("azure-conv-2023.csv", unit=unit)
    hint = f": did you mean {meant!r}?" if meant else ""
    assert str(refused.value) == f"unknown unit {unit!r}{hint} (known: s, ms, us, ns)"
