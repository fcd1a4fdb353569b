"""Decode-only steps run as the next larger captured batch; the extra rows read no context."""

import pytest

from cost_models import CapturedGraphs, CostModelError, StepShape, cost_model, graph_sizes
from cost_models.graphs import VLLM_SIZES

ROOFLINE = cost_model("roofline", model="llama-3.1-8b", gpu="h100-80")
REGIMES = cost_model("regimes", model="llama-3.1-8b", gpu="h100-80")


def test_sizes_of_vllm() -> None:
    assert VLLM_SIZES[:4] == (1, 2, 4, 8)
    assert VLLM_SIZES[-17:-15] == (256, 272)
    assert (VLLM_SIZES[-1], len(VLLM_SIZES)) == (512, 3 + 32 + 16)


@pytest.mark.parametrize(("asked", "rows"), [(1, 1), (3, 4), (4, 4), (9, 16), (257, 272), (512, 512), (513, 513)])
def test_rows_are_padded_and_context_is_not(asked: int, rows: int) -> None:
    padded = CapturedGraphs(REGIMES, VLLM_SIZES)
    assert padded.time(StepShape(asked, 5000)) == REGIMES.time(StepShape(rows, 5000))
    assert padded.decode_times(StepShape(asked, 5000), 99) == [
        REGIMES.time(StepShape(rows, 5000 + i * asked)) for i in range(99)]


def test_steps_with_chunks_run_as_they_are() -> None:
    shape = StepShape(3, 5000, ((7, 0),))
    assert CapturedGraphs(ROOFLINE, (8,)).time(shape) == ROOFLINE.time(shape)


def test_it_says_so() -> None:
    padded = CapturedGraphs(ROOFLINE, (8, 16))
    assert padded.name == "roofline"
    assert padded.origin == f"{ROOFLINE.origin}; decode rows padded to 2 captured sizes up to 16"


@pytest.mark.parametrize("text", ["", "vlm", "1,,2", "0", "-4", "1.5", "1,1000000000"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(CostModelError) as caught:
        graph_sizes(text)
    assert str(caught.value) == f"CUDA graph sizes are vllm, none or numbers such as 1,2,4,8, got '{text}'"


def test_a_size_of_thousands_of_digits_is_refused_and_quoted_in_part() -> None:
    with pytest.raises(CostModelError, match=r"such as 1,2,4,8, got '9{60}'$"):
        graph_sizes("9" * 5000)
