"""The published files, where they are at hand."""

from pathlib import Path

import numpy as np
import pytest

from traces import Trace, load

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the published traces are not here")

AZURE = {
    "code": (8_819, 3435.948056, (0.2675, 0.1212, 0.0851, 0.0608)),
    "conv": (19_366, 3501.721937, (0.4834, 0.3840, 0.3441, 0.3061)),
}
MOONCAKE = {"conversation": (12_031, 3536.999, 1_180), "synthetic": (3_993, 1022.025, 3_982)}


def azure(kind: str) -> Trace:
    return load(SHARED / "azure-2023" / f"AzureLLMInferenceTrace_{kind}.csv")


def slot_share(trace: Trace, batch: int) -> float:
    """Total output over batch size times the longest of each batch, the last incomplete one included."""
    longest = np.maximum.reduceat(trace.output, np.arange(0, len(trace), batch))
    return float(trace.output.sum() / (batch * longest.sum()))


@pytest.mark.parametrize("kind", AZURE)
def test_azure_rows_span_and_slot_shares(kind):
    trace = azure(kind)
    rows, span, shares = AZURE[kind]
    assert (len(trace), trace.report.rejected, trace.report.out_of_order) == (rows, (), 0)
    assert trace.arrival[-1] == round(span * 10**9)
    assert len(np.unique(trace.arrival)) == rows
    assert tuple(round(slot_share(trace, batch), 4) for batch in (8, 32, 64, 128)) == shares


@pytest.mark.parametrize("kind", AZURE)
def test_the_same_rows_in_another_header_are_the_same_trace(kind):
    repacked = load(SHARED / "vidur" / f"splitwise_{kind}.csv")
    assert repacked.digest == azure(kind).digest


@pytest.mark.parametrize("kind", MOONCAKE)
def test_mooncake_rows_span_ticks_and_blocks(kind):
    trace = load(SHARED / "mooncake-fast25" / f"{kind}_trace.jsonl")
    rows, span, instants = MOONCAKE[kind]
    assert (len(trace), trace.report.format, trace.report.rejected) == (rows, "mooncake", ())
    assert trace.arrival[-1] == round(span * 10**9)
    assert len(np.unique(trace.arrival)) == instants
    assert trace.hash_block == 512
    assert [len(ids) for ids in trace.hash_ids] == (-(-trace.prompt // 512)).tolist()
