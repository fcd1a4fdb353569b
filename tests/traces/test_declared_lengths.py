import numpy as np
import pytest

from traces import Trace, TraceError, declare

UNLIMITED = 1 << 60


def trace(output: list[int], prompt: int = 10, **columns: object) -> Trace:
    n = len(output)
    return Trace("t", arrival=[0] * n, prompt=[prompt] * n, output=output, **columns)


def test_exact_declares_the_own_output():
    declared = declare(trace([3, 9]), "exact", None)
    assert (declared.max_tokens.tolist(), declared.output.tolist()) == ([3, 9], [3, 9])
    assert (declared.longer, declared.cut, declared.rule, declared.default) == (0, 0, "exact", None)


@pytest.mark.parametrize("rule", [5, "5", np.int64(5), " 5 "])
def test_a_number_is_declared_by_all_and_cuts(rule):
    declared = declare(trace([3, 5, 9]), rule, None)
    assert (declared.max_tokens.tolist(), declared.output.tolist()) == ([5, 5, 5], [3, 5, 5])
    assert (declared.longer, declared.cut, declared.rule) == (0, 1, "5")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("x1", [1, 7, 10]), ("x1.5", [2, 11, 15]), ("x2", [2, 14, 20]), ("x1.1", [2, 8, 11])],
)
def test_a_factor_rounds_up_exactly(rule, expected):
    declared = declare(trace([1, 7, 10]), rule, None)
    assert declared.max_tokens.tolist() == expected
    assert (declared.output.tolist(), declared.cut) == ([1, 7, 10], 0)


def test_model_declares_what_the_prompt_leaves():
    three = Trace("t", arrival=[0, 0, 0], prompt=[4000, 12000, 8191], output=[300, 500, 1])
    declared = declare(three, "model", 8192)
    assert declared.max_tokens.tolist() == [4192, 1, 1]
    assert declared.output.tolist() == [300, 500, 1]
    assert declare(three, "model", UNLIMITED).max_tokens.tolist() == [UNLIMITED - p for p in (4000, 12000, 8191)]


@pytest.mark.parametrize("limit", [None, 0])
def test_model_needs_a_model_length(limit):
    with pytest.raises(TraceError, match="needs a model length"):
        declare(trace([1]), "model", limit)


@pytest.mark.parametrize("rule", [None, "default"])
def test_the_default_is_p99_rounded_up_to_a_power_of_two(rule):
    declared = declare(trace([100] * 198 + [129, 5000]), rule, None)
    # The 99th percentile of 200 values lies 1% of the way from the 198th to the 199th: 100.29.
    assert declared.default == 128
    assert declared.max_tokens.tolist() == [128] * 198 + [129, 5000]
    assert declared.output.tolist() == [100] * 198 + [129, 5000]
    assert (declared.longer, declared.cut, declared.rule) == (2, 0, "default")


def test_the_99th_percentile_counts_and_not_the_98th():
    assert declare(trace([100] * 98 + [1000, 1000]), None, None).default == 1024
    assert declare(trace([100] * 99 + [1000]), None, None).default == 128  # 100 + 0.01 * 900 = 109


@pytest.mark.parametrize(
    ("output", "default"), [([128] * 7, 128), ([129] * 7, 256), ([1], 1), ([2], 2), ([3], 4), ([83] * 10 + [133], 128)]
)
def test_a_power_of_two_stays_what_it_is(output, default):
    # The p99 of the last one is 128; in floats, a digit above it.
    assert declare(trace(output), None, None).default == default


def test_the_default_uses_the_own_column_where_there_is_one():
    declared = declare(trace([3, 9, 5], max_tokens=[4, 4, 5]), None, None)
    assert declared.max_tokens.tolist() == [4, 9, 5]
    assert (declared.output.tolist(), declared.longer, declared.cut) == ([3, 9, 5], 1, 0)
    assert declared.default is None


@pytest.mark.parametrize(
    "rule", ["", "twice", "x", "x0.5", "x-1", "xinf", "xnan", "x1e3", "0", "-3", "1.5", 0, -1, 1.5, True, "٣", "inf"]
)
def test_other_rules_are_refused_with_the_valid_forms(rule):
    with pytest.raises(TraceError) as refusal:
        declare(trace([1]), rule, 100)
    assert "valid: exact, a number of tokens such as 512, a factor such as x1.5" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_factor_beyond_the_integers_is_refused():
    with pytest.raises(TraceError, match="more than 2\\^62 tokens"):
        declare(trace([1 << 61]), "x999999999", None)


def test_results_are_read_only_and_an_empty_trace_is_no_error():
    declared = declare(trace([1, 2]), "exact", None)
    assert not declared.max_tokens.flags.writeable
    for rule in ("exact", 3, "x2", "model", None):
        assert len(declare(trace([]), rule, 10).max_tokens) == 0
