"""Declared lengths: the `max_tokens` a client sends, which is all a scheduler may know of an output.

Traces seldom record it, so a rule supplies it. Only an explicit number cuts outputs; no rule reads anything
but the trace. Requests too long for the model are not rejected here.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS
from traces.columns import ReadOnly
from traces.errors import TraceError, shown
from traces.trace import Trace

Int64 = npt.NDArray[np.int64]
FORMS = "valid: exact, a number of tokens such as 512, a factor such as x1.5 (1 or more), model, default"
_FACTOR = re.compile(r"x(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, eq=False)
class Declared(ReadOnly):
    """What each request declares, and its output after cuts, row by row as in the trace.

    max_tokens, output: int64 tokens, read-only.
    longer: requests with an output above what the default would declare; they declare their own output.
    cut: requests whose output an explicit number shortened.
    rule: the rule in its short form.
    default: the length that the default rule computed, where it did.
    """

    max_tokens: Int64
    output: Int64
    longer: int
    cut: int
    rule: str
    default: int | None = None


def declare(trace: Trace, rule: str | int | None, max_model_len: int | None) -> Declared:
    """Declared lengths of `trace` under `rule`.

    "exact": a request's own output.
    N: N for all; longer outputs are cut to N.
    "xF": F times the own output, rounded up; F >= 1.
    "model": all that `max_model_len` leaves after the prompt, at least 1. A request that the model cannot
        hold declares less than its output; the simulator rejects it.
    None or "default": the trace's own max_tokens where it has them, else its p99 output (linear percentile)
        rounded up to a power of two. An own output above that is declared instead and counted in `longer`.

    Raises TraceError for any other rule, naming the valid forms.

    >>> trace = Trace("two", arrival=[0, 0], prompt=[100, 50], output=[10, 31])
    >>> declare(trace, "x1.5", 4096).max_tokens.tolist(), declare(trace, 20, 4096).output.tolist()
    ([15, 47], [10, 20])
    """
    text = _spelled(rule)
    if text == "default":
        return _by_default(trace)
    if text == "exact":
        return Declared(trace.output.copy(), trace.output, 0, 0, text)
    if text == "model":
        return Declared(_model(trace, max_model_len), trace.output, 0, 0, text)
    if match := _FACTOR.fullmatch(text):
        return Declared(_scaled(trace, Fraction(match[1]), text), trace.output, 0, 0, text)
    if _NUMBER.fullmatch(text) and int(text) >= 1:
        return _explicit(trace, int(text))
    raise _unknown(rule)


def _spelled(rule: str | int | None) -> str:
    """The rule as text, so that 512 and "512" are one."""
    if rule is None:
        return "default"
    if isinstance(rule, bool) or not isinstance(rule, (str, int, np.integer)):
        raise _unknown(rule)
    return str(rule).strip()


def _unknown(rule: object) -> TraceError:
    return TraceError(f"unknown rule {shown(rule)} for max_tokens; {FORMS}")


def _by_default(trace: Trace) -> Declared:
    """The trace's own column or one common length, raised to the output where that is longer."""
    common = None
    if trace.max_tokens is None:
        common = _p99_power(trace.output)
        wish = np.full(len(trace), common, dtype=np.int64)
    else:
        wish = trace.max_tokens
    longer = int(np.count_nonzero(trace.output > wish))
    return Declared(np.maximum(wish, trace.output), trace.output, longer, 0, "default", common)


def _p99_power(output: Int64) -> int:
    """The smallest power of two that is no less than the 99th percentile."""
    if not len(output):
        return 1
    # Interpolation may leave a last-digit error above a whole number.
    p99 = math.ceil(round(float(np.percentile(output, 99)), 6))
    return 1 << (p99 - 1).bit_length()


def _model(trace: Trace, max_model_len: int | None) -> Int64:
    if max_model_len is None or max_model_len < 1:
        raise TraceError("the rule 'model' for max_tokens needs a model length above 0 (--max-model-len)")
    return np.maximum(max_model_len - trace.prompt, 1)


def _scaled(trace: Trace, factor: Fraction, text: str) -> Int64:
    """ceil(factor * output) in whole numbers: in floats 1.1 * 10 is above 11."""
    if factor < 1:
        raise TraceError(f"max_tokens {text!r} would declare less than the output; {FORMS}")
    over, under = factor.as_integer_ratio()
    declared = [-(-tokens * over // under) for tokens in trace.output.tolist()]
    if declared and max(declared) > LONGEST_NS:
        raise TraceError(f"max_tokens {text!r} declares more than 2^62 tokens; take a smaller factor")
    return np.array(declared, dtype=np.int64)


def _explicit(trace: Trace, tokens: int) -> Declared:
    cut = int(np.count_nonzero(trace.output > tokens))
    all_alike = np.full(len(trace), tokens, dtype=np.int64)
    return Declared(all_alike, np.minimum(trace.output, tokens), 0, cut, str(tokens))
