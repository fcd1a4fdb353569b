import json

import pytest

from traces import TraceError, load

CSV = "arrival,prompt,output,max_tokens\n0,1,1,1\n{}\n2,1,1,1\n"
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n{}\n2023-11-16 18:15:48,374,44\n"

BEYOND = "is more than 146 years by unit s: say a finer one if that is meant"
BAD_CSV = [
    ("-5,1,1,1", "column arrival: '-5' must not be negative"),
    ("nan,1,1,1", "column arrival: 'nan' is not a number"),
    ("inf,1,1,1", "column arrival: 'inf' is not a number"),
    ("soon,1,1,1", "column arrival: 'soon' is not a number"),
    (",1,1,1", "column arrival: '' is empty"),
    ("1e300,1,1,1", f"column arrival: '1e300' {BEYOND}"),
    ("1e999999999,1,1,1", f"column arrival: '1e999999999' {BEYOND}"),
    ("1_0,1,1,1", "column arrival: '1_0' is not a number"),
    ("2024-05-10 00:00:00,1,1,1", "column arrival: '2024-05-10 00:00:00' is not a number"),
    ("1,0,1,1", "column prompt: '0' must be 1 or more"),
    ("1,-3,1,1", "column prompt: '-3' must be 1 or more"),
    ("1,12.5,1,1", "column prompt: '12.5' must be a whole number"),
    ("1,,1,1", "column prompt: '' is empty"),
    ("1,many,1,1", "column prompt: 'many' is not a number"),
    ("1,nan,1,1", "column prompt: 'nan' is not a number"),
    ("1,٣,1,1", "column prompt: '٣' is not a number"),
    ("1,0x10,1,1", "column prompt: '0x10' is not a number"),
    ("1,9007199254740993,1,1", "column prompt: '9007199254740993' must be at most 2^53"),
    ("1,1e400000000,1,1", "column prompt: '1e400000000' must be at most 2^53"),
    (f"1,{'9' * 5000},1,1", f"column prompt: '{'9' * 59}... must be at most 2^53"),
    ("1,1,0,1", "column output: '0' must be 1 or more"),
    ("1,1,2.000001,1", "column output: '2.000001' must be a whole number"),
    ("1,1,1,0", "column max_tokens: '0' must be 1 or more"),
    ("1,1,1,", "column max_tokens: '' is empty"),
    ("1,1,1", "row: '1,1,1' must have 4 fields, not 3"),
    ("1,1,1,1,1", "row: '1,1,1,1,1' must have 4 fields, not 5"),
    ('1,1,1,"1', "row: '1,1,1,\"1' is not a CSV row on one line (unexpected end of data)"),
    ("1,1,1\0,1", "row: b'1,1,1\\x00,1\\n' holds a NUL byte; is this a text file?"),
    (b"1,1,1\xff,1", "row: b'1,1,1\\xff,1\\n' is not UTF-8 (invalid start byte at byte 5)"),
]


def fill(template: str, row: str | bytes) -> bytes:
    before, after = template.split("{}")
    return before.encode() + (row.encode() if isinstance(row, str) else row) + after.encode()


@pytest.mark.parametrize(("row", "message"), BAD_CSV)
def test_a_bad_row_is_refused_with_file_line_column_value_and_rule(write, row, message):
    path = write(fill(CSV, row))
    with pytest.raises(TraceError) as refusal:
        load(path, unit="s")
    assert str(refusal.value) == f"{path}, line 3, {message}"


@pytest.mark.parametrize(("row", "message"), BAD_CSV)
def test_lenient_leaves_it_out_and_counts_it(write, row, message):
    trace = load(write(fill(CSV, row)), unit="s", lenient=True)
    assert trace.arrival.tolist() == [0, 2 * 10**9]
    assert [str(reject) for reject in trace.report.rejected] == [f"line 3, {message}"]
    assert trace.report.rows_in == len(trace) + len(trace.report.rejected) == 3


def test_an_azure_row_without_input_tokens(write):
    path = write(AZURE.format("2023-11-16 18:15:47,0,10"))
    with pytest.raises(TraceError) as refusal:
        load(path)
    assert str(refusal.value) == f"{path}, line 3, column ContextTokens: '0' must be 1 or more"
    assert len(load(path, lenient=True)) == 2


BAD_JSON = [
    ('{"arrival": 1, "prompt": 1}', "column output: None is missing"),
    ('{"arrival": 1, "prompt": null, "output": 1}', "column prompt: None is empty"),
    ('{"arrival": 1, "prompt": true, "output": 1}', "column prompt: True is not a number"),
    ('{"arrival": 1, "prompt": [1], "output": 1}', "column prompt: [1] is not a number"),
    ('{"arrival": 1, "prompt": 1.5, "output": 1}', "column prompt: '1.5' must be a whole number"),
    ('{"arrival": 1, "prompt": 0, "output": 1}', "column prompt: 0 must be 1 or more"),
    ('{"arrival": 1, "prompt": -7, "output": 1}', "column prompt: -7 must be 1 or more"),
    ('{"arrival": 1, "prompt": 9007199254740993, "output": 1}', "column prompt: 9007199254740993 must be at most 2^53"),
    ('{"arrival": NaN, "prompt": 1, "output": 1}', "column arrival: 'NaN' is not a number"),
    ('{"arrival": -Infinity, "prompt": 1, "output": 1}', "column arrival: '-Infinity' is not a number"),
    ('{"arrival": -0.001, "prompt": 1, "output": 1}', "column arrival: '-0.001' must not be negative"),
    ("[1, 1, 1]", "row: '[1, 1, 1]' must be a JSON object"),
    ("12", "row: '12' must be a JSON object"),
    ('{"arrival": 1', "row: '{\"arrival\": 1' is not valid JSON (expecting ',' delimiter)"),
    ('{"a": 1} {"a": 2}', 'row: \'{"a": 1} {"a": 2}\' is not valid JSON (extra data)'),
]


@pytest.mark.parametrize(("row", "message"), BAD_JSON)
def test_bad_json_rows_are_named_the_same_way(write, row, message):
    good = '{"arrival": 0, "prompt": 1, "output": 1}\n'
    path = write(good + row + "\n" + good)
    with pytest.raises(TraceError) as refusal:
        load(path, unit="s")
    assert str(refusal.value) == f"{path}, line 2, {message}"
    assert len(load(path, unit="s", lenient=True)) == 2


@pytest.mark.parametrize("row", ["[" * 100_000, '{"arrival": ' + "9" * 5000 + "}", '{"a": "' + "x" * 100_000])
def test_monstrous_json_is_one_short_line(write, row):
    with pytest.raises(TraceError, match=r"line 2, row: .* is not valid JSON") as refusal:
        load(write('{"arrival": 0, "prompt": 1, "output": 1}\n' + row), unit="s")
    assert len(str(refusal.value)) < 500
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["a\tb", "a\u2028b", "\ud800", ["list"], True])
def test_a_tenant_is_a_printable_name(write, name):
    row = {"arrival": 0, "prompt": 1, "output": 1, "tenant": name}
    with pytest.raises(TraceError, match=r"column tenant: .* is not a printable name"):
        load(write(json.dumps(row)), unit="s")


def test_whole_numbers_may_be_written_as_floats(write):
    trace = load(write("arrival,prompt,output\n+0.0,12.0,1e2\n1,007, 5 \n"), unit="s")
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([12, 7], [100, 5])


def test_a_bad_row_deep_in_the_file_is_found_by_its_line(write):
    rows = [f"{i},1,1" for i in range(40_000)]
    rows[33_333] = "33333,0,1"
    path = write("arrival,prompt,output\n" + "\n".join(rows))
    with pytest.raises(TraceError, match="line 33335, column prompt: '0'"):
        load(path, unit="s")
    trace = load(path, unit="s", lenient=True)
    assert (len(trace), trace.report.rejected[0].place) == (39_999, "line 33335")


def test_a_quoted_field_may_not_span_lines(write):
    path = write('arrival,prompt,output,tenant\n0,1,1,"a\n1,1,1,b"\n2,1,1,c\n')
    with pytest.raises(TraceError, match=r"line 2, row: .* is not a CSV row on one line"):
        load(path, unit="s")


def test_a_file_of_bad_rows_only_is_refused_with_the_first(write):
    with pytest.raises(TraceError, match=r"no usable rows \(2 bad ones, the first in line 2, column prompt: '0'"):
        load(write("arrival,prompt,output\n0,0,1\n1,0,1\n"), unit="s", lenient=True)
