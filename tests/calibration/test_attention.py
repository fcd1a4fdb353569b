"""Every way to attend to a paged cache is right, and the check that says so can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'calibration'")

from calibration.attention import choosing, varlen
from calibration.attention.base import AttentionPath
from calibration.attention.check import TOLERANCES, Heads, error_of, random_case, reference
from calibration.attention.flex import FlexPaged
from calibration.attention.gather import GatherAndAttend
from calibration.attention.split import Split
from calibration.attention.triton_decode import TritonDecode, splits_for
from calibration.attention.varlen import Varlen
from calibration.paged import Batch, Pages, Row
from simulator.errors import InputError

CPU = torch.device("cpu")
SHAPES = [Heads(8, 2, 32), Heads(4, 4, 64), Heads(7, 1, 32)]
FEW = (1, 16, 17, 100)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_reference_is_softmax_by_hand() -> None:
    """One head, two tokens: weights e^0 and e^1 over their sum."""
    pages = Pages(torch.tensor([[[[0.0]], [[1.0]]]]), torch.tensor([[[[2.0]], [[4.0]]]]))
    batch = Batch.of([Row(1, 2, [0])], 2, CPU)
    share = np.e / (1 + np.e)
    assert reference(torch.ones(1, 1, 1), pages, batch).item() == pytest.approx(2 * (1 - share) + 4 * share)


@pytest.mark.parametrize("heads", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("page_size", [1, 16])
def test_gathering_is_right(heads: Heads, dtype: Any, page_size: int) -> None:
    assert error_of(GatherAndAttend(), heads, page_size, dtype, CPU, rng(), lengths=FEW) <= TOLERANCES[dtype]


def test_decodes_and_chunks_may_go_different_ways() -> None:
    path = Split(GatherAndAttend(), GatherAndAttend())
    assert error_of(path, SHAPES[0], 16, torch.float64, CPU, rng(), lengths=(16, 17)) < 1e-12    # no decodes, then both
    assert error_of(path, SHAPES[0], 16, torch.float32, CPU, rng(), lengths=FEW) <= 1e-4
    assert path.obstacle(CPU) is None
    assert Split(path, Varlen()).obstacle(CPU) == "varlen_attn needs CUDA"


class WritesNothing(GatherAndAttend):
    def attend(self, query: Any, pages: Pages, batch: Batch, out: Any) -> None:
        pass


class LeavesTheLastRowOut(GatherAndAttend):
    def attend(self, query: Any, pages: Pages, batch: Batch, out: Any) -> None:
        super().attend(query, pages, batch, out)
        out[-1] = float("nan")


class SeesOneTokenMore(GatherAndAttend):
    """It reads the token behind the sequence's last one: another one's, or nobody's."""

    def attend(self, query: Any, pages: Pages, batch: Batch, out: Any) -> None:
        rows = [Row(row.new, min(row.length + 1, len(row.pages) * batch.page_size), row.pages) for row in batch.rows]
        super().attend(query, pages, Batch.of(rows, batch.page_size, CPU), out)


class MissesTheFirstPage(GatherAndAttend):
    def attend(self, query: Any, pages: Pages, batch: Batch, out: Any) -> None:
        rows = [Row(row.new, row.length, [row.pages[-1], *row.pages[1:]]) for row in batch.rows]
        super().attend(query, pages, Batch.of(rows, batch.page_size, CPU), out)


@pytest.mark.parametrize("wrong", [WritesNothing, LeavesTheLastRowOut, SeesOneTokenMore, MissesTheFirstPage])
def test_a_wrong_path_is_found_out(wrong: type[AttentionPath]) -> None:
    assert error_of(wrong(), SHAPES[0], 16, torch.float32, CPU, rng(), lengths=FEW) > 0.1


def test_a_wrong_path_and_one_that_fails_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails(GatherAndAttend):
        def attend(self, query: Any, pages: Pages, batch: Batch, out: Any) -> None:
            raise RuntimeError("no kernel image")

    Fails.name, MissesTheFirstPage.name = "fails", "misses"
    monkeypatch.setattr(choosing, "CPU_PATHS", (Varlen, Fails, MissesTheFirstPage, GatherAndAttend))
    chosen = choosing.working_path(SHAPES[0], torch.float32, CPU, rng())
    assert (chosen.path.name, chosen.page_size) == ("gather", 16)
    assert list(chosen.refused) == ["varlen", "fails", "misses"]
    assert chosen.refused["varlen"] == "varlen_attn needs CUDA"
    assert chosen.refused["fails"] == "pages of 16: RuntimeError: no kernel image"
    assert "against float64" in chosen.refused["misses"]
    monkeypatch.setattr(choosing, "CPU_PATHS", (Fails,))
    with pytest.raises(InputError, match=r"rightly on cpu \(fails: pages of 16: RuntimeError: no kernel image\)"):
        choosing.working_path(SHAPES[0], torch.float32, CPU, rng())


def attention_with_a_block_table(query: Any, key: Any, value: Any, cu_seq_q: Any, cu_seq_k: Any, max_q: int, max_k: int,
                                 *, window_size: tuple[int, int], enable_gqa: bool, seqused_k: Any,
                                 block_table: Any) -> Any:
    """What torch's documentation says that varlen_attn computes, from its arguments alone."""
    assert (cu_seq_k, window_size, enable_gqa) == (None, (-1, 0), True)
    starts, lengths = cu_seq_q.tolist(), seqused_k.tolist()
    assert max_q == max(np.diff(starts))
    assert max_k == max(lengths)
    rows = [Row(end - start, length, table) for start, end, length, table in
            zip(starts[:-1], starts[1:], lengths, block_table.tolist(), strict=True)]
    return reference(query, Pages(key, value), Batch.of(rows, key.shape[1], CPU)).to(query.dtype)


def test_varlen_gets_what_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's kernel needs CUDA; its arguments do not."""
    monkeypatch.setattr(varlen, "_function", {"varlen_attn": attention_with_a_block_table}.get)
    assert error_of(Varlen(), SHAPES[0], 16, torch.float32, CPU, rng(), lengths=FEW) <= 1e-4


def test_varlen_calls_torch_as_torch_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    called = {name: varlen._function(name) for name in ("varlen_attn", "varlen_attn_out")}
    if not called["varlen_attn"]:
        pytest.skip("this torch has no varlen_attn with a block table")
    bound = []
    monkeypatch.setattr(varlen, "_function", lambda name: lambda *given, **options: bound.append(
        signature(called[name]).bind(*given, **options)))
    query, pages, batch = random_case(SHAPES[0], [(1, 20), (3, 9)], 16, torch.float32, CPU, rng())
    Varlen().attend(query, pages, batch, torch.empty_like(query))
    assert bound[0].arguments["seqused_k"].tolist() == [20, 9]
    assert bound[0].arguments["cu_seq_q"].tolist() == [0, 1, 4]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_flex_attention_over_pages_is_right(dtype: Any) -> None:
    if reason := FlexPaged().obstacle(CPU):
        pytest.skip(reason)
    assert error_of(FlexPaged(), Heads(8, 2, 64), 128, dtype, CPU, rng()) <= TOLERANCES[dtype]


def test_long_sequences_are_cut_where_few_programs_run() -> None:
    assert [splits_for(8, 8192), splits_for(8, 1024), splits_for(8, 100), splits_for(2048, 8192)] == [32, 4, 1, 1]
    assert splits_for(256, 8192) == 2


INTERPRETED = """
import sys
import numpy as np, torch
from calibration.attention.check import LENGTHS, Heads, error_of
from calibration.attention.triton_decode import TritonDecode
rng, cpu = np.random.default_rng(7), torch.device("cpu")
print(max(error_of(TritonDecode(), heads, page, getattr(torch, sys.argv[1]), cpu, rng, lengths=(*LENGTHS, 2100))
          for heads, page in ((Heads(8, 2, 64), 16), (Heads(7, 1, 64), 128), (Heads(4, 4, 32), 16))))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 1e-2)])
def test_our_triton_kernel_is_right(dtype: str, tolerance: float) -> None:
    """Triton's interpreter stands in for a GPU; it cannot multiply bfloat16, so float16 stands for half precision."""
    if find_spec("triton") is None:
        pytest.skip("triton is not installed")
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        pytest.skip(f"triton's interpreter does not work with numpy {np.__version__}")
    around = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    run = subprocess.run([sys.executable, "-c", INTERPRETED, dtype], capture_output=True, text=True, check=False,
                         env=os.environ | around)
    assert run.returncode == 0, run.stderr[-2000:]
    assert float(run.stdout) <= tolerance


def test_triton_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    expected = "triton needs CUDA, or TRITON_INTERPRET=1" if find_spec("triton") else "triton is not installed"
    assert TritonDecode().obstacle(CPU) == expected
