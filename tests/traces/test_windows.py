"""A window of time and a limit: the window first, the limit after."""

import pytest

from traces import TraceError, load

SECOND = 10**9
STAMPS = ["09:59:59.9", "10:00:00", "10:30:00", "10:59:59.999", "11:00:00", "23:00:00"]


def day(*stamps: str) -> str:
    rows = "".join(f"2024-05-10 {stamp},{at + 1},1\n" for at, stamp in enumerate(stamps))
    return "TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows


def test_the_window_starts_with_its_first_and_ends_before_its_last_instant(write):
    trace = load(write(day(*STAMPS)), window="10:00-11:00")
    assert trace.prompt.tolist() == [2, 3, 4]
    assert trace.arrival.tolist() == [0, 1800 * SECOND, 3_599_999_000_000]
    assert (trace.report.rows_in, trace.report.outside) == (6, 3)


def test_the_limit_counts_those_inside(write):
    assert load(write(day(*STAMPS)), window="10:00-11:00", limit=2).prompt.tolist() == [2, 3]


def test_of_a_hundred_rows_only_the_fifteen_eligible_are_read_and_none_twice(write):
    text = day(*[f"08:{at % 60:02}:00" for at in range(85)], *[f"10:{at:02}:00" for at in range(15)])
    trace = load(write(text), window="10:00-11:00", limit=100)
    assert (len(trace), len(set(trace.prompt.tolist()))) == (15, 15)
    assert trace.report.outside == 85


def test_hours_above_24_are_days_later(write):
    text = day(*STAMPS) + "2024-05-11 10:15:00,99,1\n"
    assert load(write(text), window="34:00-35:00").prompt.tolist() == [99]


def test_plain_numbers_count_from_their_zero_or_their_midnight(write):
    text = "arrival,prompt,output\n{0},1,1\n{1},2,1\n{2},3,1\n"
    for zero in (0, 19_853 * 86_400):
        path = write(text.format(zero + 5, zero + 36_000, zero + 36_001))
        assert load(path, unit="s", window="10:00-10:01").prompt.tolist() == [2, 3]


def test_the_midnight_is_that_of_the_first_row_that_has_a_time(write):
    path = write("arrival,prompt,output\nsoon,1,1\n360005,2,1\n")    # 04:00:05 on the fifth day
    assert load(path, unit="s", window="04:00-04:01", lenient=True).prompt.tolist() == [2]
    with pytest.raises(TraceError, match=r"1 outside of the window 100:00-101:00"):
        load(path, unit="s", window="100:00-101:00", lenient=True)


def test_a_window_of_nothing_says_where_the_rows_are(write):
    with pytest.raises(TraceError, match=r"no usable rows \(6 outside of the window 12:00-13:00, for "
                                         r"they come from 09:59:59 to 23:00:00\)"):
        load(write(day(*STAMPS)), window="12:00-13:00")


@pytest.mark.parametrize("window", ["10-11", "10:00", "11:00-10:00", "10:00-10:00", "10:60-11:00", "", 5, "-1:00-2:00"])
def test_a_window_is_two_times_of_a_day(write, window):
    with pytest.raises(TraceError, match=r"a window is FROM-TO|ends before it starts"):
        load(write(day(*STAMPS)), window=window)


def test_without_arrivals_there_is_no_window(write):
    with pytest.raises(TraceError, match="a window needs arrival times, and there are none"):
        load(write("num_prefill_tokens,num_decode_tokens\n1,1\n"), window="10:00-11:00")


def test_a_bundled_trace_has_a_window_too():
    whole = load("azure-conv-2023")
    part = load("azure-conv-2023", window="00:10-00:20")
    assert len(part) == ((whole.arrival >= 600 * SECOND) & (whole.arrival < 1200 * SECOND)).sum()
    assert load("azure-conv-2023", window="00:10-00:20", limit=5).digest == part.head(5).digest
    with pytest.raises(TraceError, match=r"no requests in the window .*, for they come from 00:00:00 to 00:5"):
        load("azure-conv-2023", window="10:00-11:00")
