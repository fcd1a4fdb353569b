import pytest

from traces import TraceError, load

SECOND = 10**9


def test_one_trace_in_four_units_is_one_trace(write):
    stamps = {"s": ("0", "0.012", "1.5"), "ms": ("0", "12", "1.5e3"), "us": ("0", "12000", "1500000")}
    stamps["ns"] = ("0", "12000000", "1500000000")
    for unit, (first, second, third) in stamps.items():
        text = f"ts,in,out\n{first},1,2\n{second},3,4\n{third},5,6\n"
        trace = load(write(text), columns={"arrival": "ts", "prompt": "in", "output": "out"}, unit=unit)
        assert trace.arrival.tolist() == [0, 12_000_000, 1_500_000_000], unit


@pytest.mark.parametrize(
    "stamps", [("0", "12", "40"), ("1700000000000", "1700000000012", "1700000000040"), ("-5", "0", "1")]
)
@pytest.mark.parametrize("shape", ["csv", "jsonl"])
def test_the_unit_of_plain_numbers_is_never_guessed(write, stamps, shape):
    if shape == "csv":
        text = "arrival,prompt_tokens,output_tokens\n" + "".join(f"{stamp},1,1\n" for stamp in stamps)
    else:
        text = "".join(f'{{"arrival": {stamp}, "prompt_tokens": 1, "output_tokens": 1}}\n' for stamp in stamps)
    path = write(text)
    with pytest.raises(TraceError) as refusal:
        load(path)
    assert str(refusal.value) == (
        f"{path}: times in column arrival are plain numbers, their unit is not guessed: "
        "give the unit (s, ms, us or ns) beside --columns arrival=arrival"
    )


@pytest.mark.parametrize(
    ("gap", "unit", "told"),
    [
        (250, "s", "by unit s, half of the gaps between requests are 250 s or longer: if the times are in ms, say unit "
                   "ms"),
        (0.25, "ms", "by unit ms, 4,000 requests come a second: if the times are in s, say unit s"),
        (250, "us", "by unit us, 4,000 requests come a second: if the times are in ms, say unit ms"),
        (250, "ms", None), (0.25, "s", None), (20, "s", None), (1, "ms", None), (0, "ms", None), (10**12, "ns", None),
    ],
)
def test_a_unit_by_which_requests_come_unlikely_slow_or_fast_is_told(write, gap, unit, told):
    rows = [f"{at * gap},1,1\n" for at in range(12)]
    header = "arrival,prompt,output\n"
    notes = load(write(header + "".join(rows)), unit=unit).report.notes
    assert notes == (() if told is None else (told,))
    assert load(write(header + "".join(rows[:9])), unit=unit).report.notes == ()    # too few to tell


def test_times_beyond_the_clock_may_be_in_a_finer_unit(write):
    with pytest.raises(TraceError, match=r"'1700000000000' is more than 146 years by unit s: say a finer one"):
        load(write("arrival,prompt,output\n1700000000000,1,1\n"), unit="s")


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_semicolons_and_tabs_separate_columns_as_commas_do(write, separator, quote):
    rows = [["ts", "in", "out", "tenant"], ["0", "1", "2", "a"], ["1", "3", "4", ""]]
    text = "".join(separator.join(f"{quote}{each}{quote}" for each in row) + "\n" for row in rows)
    trace = load(write(text), columns={"arrival": "ts", "prompt": "in", "output": "out"}, unit="s")
    assert trace.arrival.tolist() == [0, SECOND]
    assert trace.prompt.tolist() == [1, 3]
    assert trace.output.tolist() == [2, 4]


def test_a_comma_that_splits_the_header_is_the_separator(write):
    trace = load(write("arrival,prompt,output,a;b\n0,1,2,x;y\n"), unit="s")
    assert trace.prompt.tolist() == [1]
    path = write("arrival;prompt;output\n0;1;2\n0;1,5;2\n")
    with pytest.raises(TraceError, match=r"line 3, column prompt: '1,5' "):
        load(path, unit="s")


def test_dates_need_no_unit_and_a_given_one_does_no_harm(write):
    path = write("arrival,prompt,output\n2024-05-10 00:00:00+00:00,1,1\n2024-05-10T00:00:01.25Z,1,1\n")
    assert load(path).arrival.tolist() == [0, 1_250_000_000]
    assert load(path, unit="ms").arrival.tolist() == [0, 1_250_000_000]


def test_an_unknown_unit_is_refused(write):
    with pytest.raises(TraceError, match=r"unknown unit 'min'.* \(known: s, ms, us, ns\)"):
        load(write("arrival,prompt,output\n0,1,1\n"), unit="min")


def test_numbers_are_exact_to_the_nanosecond(write):
    # None of these is a float; the first alone has more digits than one holds.
    text = "arrival,prompt,output\n1700000000.123456789,1,1\n1700000000.123456790,1,1\n1700000001.1234567894,1,1\n"
    assert load(write(text), unit="s").arrival.tolist() == [0, 1, SECOND]
    row = '{{"arrival": {}, "prompt": 1, "output": 1}}\n'
    jsonl = row.format("1700000000.123456789") + row.format("1700000000.12345679")
    assert load(write(jsonl), unit="s").arrival.tolist() == [0, 1]


def test_the_first_arrival_becomes_0(write):
    trace = load(write("arrival,prompt,output\n1000,1,1\n1001,1,1\n1003,1,1\n"), unit="s")
    assert trace.arrival.tolist() == [0, SECOND, 3 * SECOND]
    assert trace.scale_rate(2).arrival.tolist() == [0, SECOND // 2, 3 * SECOND // 2]


def test_rows_out_of_order_are_sorted_and_counted_and_ties_keep_their_order(write):
    path = write("arrival,prompt,output\n3,1,1\n1,2,1\n2,3,1\n2,4,1\n0,5,1\n")
    trace = load(path, unit="s")
    assert trace.arrival.tolist() == [0, SECOND, 2 * SECOND, 2 * SECOND, 3 * SECOND]
    assert trace.prompt.tolist() == [5, 2, 3, 4, 1]
    assert trace.report.out_of_order == 4
    ordered = load(write("arrival,prompt,output\n0,5,1\n1,2,1\n2,3,1\n2,4,1\n3,1,1\n"), unit="s")
    assert (ordered.digest, ordered.report.out_of_order) == (trace.digest, 0)


@pytest.mark.parametrize(
    "header",
    [
        "arrived_at,num_prompt_tokens,num_decode_tokens",
        "timestamp,input_length,output_length",
        "arrival_time,prompt_tokens,completion_tokens",
        "arrival_timestamp,prompt_size,token_size",
        "Arrival Time,ContextTokens,GeneratedTokens",
    ],
)
def test_customary_names_are_known(write, header):
    trace = load(write(f"{header}\n0,5,6\n"), unit="s")
    assert (trace.prompt.tolist(), trace.output.tolist(), trace.report.format) == ([5], [6], "table")


def test_max_tokens_and_tenant_are_kept(write):
    trace = load(write("arrival,prompt,output,max_tokens,tenant\n0,1,2,8,ann\n1,1,2,9,\n"), unit="s")
    assert (trace.max_tokens.tolist(), trace.tenant) == ([8, 9], ("ann", ""))
    mapped = load(
        write("arrival,prompt,output,limit,user\n0,1,2,8,ann\n"),
        columns={"max_tokens": "limit", "tenant": "user"},
        unit="s",
    )
    assert (mapped.max_tokens.tolist(), mapped.tenant) == ([8], ("ann",))


def test_without_an_arrival_column_the_columns_are_listed(write):
    path = write("prompt_len,output_len,pd_ratio\n3772,54,69.8\n12,8,1.5\n")
    with pytest.raises(TraceError, match=r"which column is the arrival\?.*\(columns: prompt_len, output_len"):
        load(path)
    trace = load(path, columns={"arrival": ""})
    assert (trace.arrival.tolist(), trace.prompt.tolist()) == ([0, 0], [3772, 12])


def test_of_several_possible_arrivals_one_must_be_named(write):
    path = write("timestamp,arrival,prompt,output\n40,180,1,1\n41,190,1,1\n")
    with pytest.raises(TraceError, match="timestamp, arrival may all be the arrival; say --columns arrival=NAME"):
        load(path, unit="ms")
    assert load(path, unit="ms", columns={"arrival": "arrival"}).arrival.tolist() == [0, 10_000_000]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"promt": "prompt"}, "unknown role in columns 'promt': did you mean 'prompt'?"),
        ({"arrival": "when"}, "no column 'when' for arrival (columns: arrival, prompt, output, note, note)"),
        ({"tenant": "note"}, "column 'note' for tenant appears twice in the header"),
        ({"prompt": ""}, "which column is the prompt? say --columns prompt=NAME"),
    ],
)
def test_wrong_columns_are_named(write, columns, message):
    with pytest.raises(TraceError) as refusal:
        load(write("arrival,prompt,output,note,note\n0,1,1,,\n"), columns=columns, unit="s")
    assert message in str(refusal.value)


def test_json_lines_take_the_same_columns(write):
    text = '{"t": 0.5, "in": 3, "out": 4}\n{"in": "5", "out": 6.0, "t": 1}\n'
    trace = load(write(text), columns={"arrival": "t", "prompt": "in", "output": "out"}, unit="s")
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, SECOND // 2], [3, 5], [4, 6])
    assert trace.report.format == "table"
