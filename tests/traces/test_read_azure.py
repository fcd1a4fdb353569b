import gzip

import pytest

from traces import TraceError, load

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
SECOND = 10**9


def azure(*stamps: str) -> str:
    return HEADER + "".join(f"{stamp},{10 + row},{row + 1}\n" for row, stamp in enumerate(stamps))


def test_rows_with_and_without_decimals_a_t_and_a_z_parse_to_their_instants(write):
    stamps = ("2023-11-16 18:15:46.6805900", "2023-11-16 18:17:03", "2023-11-16T18:17:04Z", "2023-11-16T18:17:04.5Z")
    trace = load(write(azure(*stamps)))
    assert trace.arrival.tolist() == [0, 76_319_410_000, 77_319_410_000, 77_819_410_000]
    assert (trace.report.format, trace.report.rows_in, trace.report.rejected) == ("azure", 4, ())


def test_the_clock_is_the_one_that_a_window_counts(write):
    path = write(azure("2023-11-16 23:15:46.5", "2023-11-17 00:17:03", "2023-11-17 01:00:00"))
    facts = load(path).describe()
    assert facts["clock"] == "23:15:46 to 25:00:00"
    assert len(load(path, window="23:15-25:00")) == 2


@pytest.mark.parametrize("decimals", ["", ".0", ".00", ".000", ".000000", ".0000000", ".000000000"])
def test_the_same_instant_in_any_number_of_decimals(write, decimals):
    trace = load(write(azure("2023-11-16 18:17:02.999999999", f"2023-11-16 18:17:03{decimals}")))
    assert trace.arrival.tolist() == [0, 1]


def test_every_decimal_counts(write):
    digits = "987654321"
    stamps = ["2023-11-16 18:17:03"] + [f"2023-11-16 18:17:03.{digits[:n]}" for n in (1, 2, 3, 6, 7, 9)]
    trace = load(write(azure(*stamps)))
    expected = [0] + [int(digits[:n].ljust(9, "0")) for n in (1, 2, 3, 6, 7, 9)]
    assert trace.arrival.tolist() == expected


@pytest.mark.parametrize(
    ("zone", "offset_s"),
    [
        ("Z", 0),
        ("+00:00", 0),
        ("-00:00", 0),
        ("+0530", 19_800),
        ("+05:30", 19_800),
        ("-08", -28_800),
        ("+14:00", 50_400),
    ],
)
def test_offsets_move_the_instant_and_no_zone_is_utc(write, zone, offset_s):
    trace = load(write(azure("2023-11-15 00:00:00", f"2023-11-16 18:15:46.5{zone}")))
    assert trace.arrival[1] == (SECOND * (86_400 + 65_746) + SECOND // 2) - offset_s * SECOND


def test_days_months_and_leap_years_are_counted(write):
    trace = load(write(azure("2024-02-28 23:59:59.999999999", "2024-02-29 00:00:00", "2024-03-01 00:00:00")))
    assert trace.arrival.tolist() == [0, 1, 86_400 * SECOND + 1]


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46,374,44\r\n2023-11-16 18:15:47.5,396,109",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n2023-11-16 18:15:47.5,396,109\n",
        "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n2023-11-16 18:15:47.5,396,109",
        f"\n\r\n{HEADER}\n2023-11-16 18:15:46,374,44\n \n2023-11-16 18:15:47.5,396,109\n\n",
        'TIMESTAMP,"ContextTokens",GeneratedTokens\n"2023-11-16 18:15:46",374,"44"\n2023-11-16 18:15:47.5, 396 ,109.0',
        "GeneratedTokens,extra,TIMESTAMP,ContextTokens\n44,x,2023-11-16 18:15:46,374\n109,y,2023-11-16 18:15:47.5,396",
    ],
    ids=["CRLF, no last newline", "LF", "byte order mark", "blank lines", "quotes and spaces", "other order"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_dress_does_not_matter(write, text, pack):
    trace = load(write(pack(text.encode())))
    assert trace.arrival.tolist() == [0, 3 * SECOND // 2]
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([374, 396], [44, 109])
    assert (trace.report.format, trace.report.rows_in) == ("azure", 2)


def test_line_numbers_count_blank_lines_too(write):
    with pytest.raises(TraceError, match=r"t\.csv, line 6, column ContextTokens: '0' must be 1 or more"):
        load(write("\n" + HEADER + "\n2023-11-16 18:15:46,1,1\n\n2023-11-16 18:15:47,0,1\n"))


@pytest.mark.parametrize(
    "stamp",
    [
        "2023-11-16",
        "2023-11-16 18:15",
        "2023-11-16 24:00:00",
        "2023-11-16 18:15:60",
        "2023-02-30 18:15:46",
        "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46.0123456789",
        "2023-11-16 18:15:46+25:00",
        "2023-11-16 18:15:46 UTC",
        "16.11.2023 18:15:46",
        "２０２３-11-16 18:15:46",
        "NaN",
        "12.5",
    ],
)
def test_what_is_no_instant_is_refused(write, stamp):
    with pytest.raises(TraceError, match=r"line 3, column TIMESTAMP: '.*' is not a date and time"):
        load(write(azure("2023-11-16 18:15:45", stamp)))


def test_years_outside_the_clock_are_refused(write):
    with pytest.raises(TraceError, match="must lie in the years 1970 to 2110"):
        load(write(azure("1969-12-31 23:59:59")))
    longest = load(write(azure("1970-01-01 00:00:00", "2110-12-31 23:59:59.999999999")))
    assert longest.span_s > 4.4e9


def test_columns_of_ones_own_are_kept_beside_the_known_ones(write):
    text = "TIMESTAMP,ContextTokens,GeneratedTokens,max_tokens,user\n2023-11-16 18:15:46,374,44,64,ann\n"
    trace = load(write(text), columns={"tenant": "user"})
    assert (trace.report.format, trace.tenant, trace.max_tokens.tolist()) == ("azure", ("ann",), [64])
    assert load(write(text), columns={"max_tokens": ""}).max_tokens is None
