import numpy as np
import pytest

from traces import Trace, TraceError, available, load
from traces.standins import bundled, names

BATCHES = (8, 32, 64, 128)
TURNS = "mooncake-conversation-turns"
MEASURED = ("azure-conv-2023", "azure-code-2023", "mooncake-conversation", "mooncake-synthetic")


def slot_share(trace: Trace, batch: int) -> float:
    """sum(out) / sum(batch * max(out)) over full batches."""
    full = trace.output[: len(trace) // batch * batch].reshape(-1, batch)
    return float(full.sum() / (batch * full.max(axis=1).sum()))


def expected_share(name: str, batch: int) -> float:
    shares = bundled(name).slot_shares
    return shares.get("shuffled", shares["as_published"])[batch]


def ranks(values: np.ndarray) -> np.ndarray:
    """The mean rank of equal values."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2)[places]


def variation(trace: Trace) -> float:
    gaps = np.diff(trace.arrival)
    return float(gaps.std() / gaps.mean())


@pytest.mark.parametrize("name", names())
def test_slot_shares_are_within_5_percent_of_the_shuffled_original(name):
    trace = load(name)
    for batch in BATCHES:
        assert slot_share(trace, batch) == pytest.approx(expected_share(name, batch), rel=0.05), batch


@pytest.mark.parametrize("name", names())
def test_slot_shares_are_within_5_percent_over_many_seeds(name):
    traces = [load(name, seed=seed) for seed in range(12)]
    for batch in BATCHES:
        mean = np.mean([slot_share(trace, batch) for trace in traces])
        assert mean == pytest.approx(expected_share(name, batch), rel=0.05), batch


@pytest.mark.parametrize("name", names())
def test_lengths_follow_the_listed_quantiles(name):
    trace, spec = load(name), bundled(name)
    first = trace.prompt if trace.parent is None else trace.prompt[trace.parent < 0]
    for column, listed in ((first, spec.prompt.tokens), (trace.output, spec.output.tokens)):
        wanted = np.maximum(listed, 1)[[10, 50, 90]]
        slack = np.maximum(1, 0.03 * wanted)
        assert (abs(np.percentile(column, [10, 50, 90]) - wanted) <= slack).all()
        assert wanted[0] <= column.max() <= listed[100]


@pytest.mark.parametrize("name", names())
def test_a_spec_is_whole(name):
    spec = bundled(name)
    assert spec.name == name
    assert all(len(law.tail) >= 11 for law in (spec.prompt, spec.output))
    assert spec.arrivals.rows in (None, spec.turns.conversations if spec.turns else spec.rows)


@pytest.mark.parametrize("name", MEASURED)
def test_counts_per_minute_and_span_are_those_of_the_original(name):
    trace, facts = load(name), bundled(name).arrivals
    assert len(trace) == sum(facts.counts)
    assert np.bincount(trace.arrival // (60 * 10**9)).tolist() == facts.counts
    assert (trace.arrival[0], trace.span_s) == (0, pytest.approx(facts.span_s, abs=3))


@pytest.mark.parametrize(
    ("name", "published", "error"),
    [
        ("azure-conv-2023", 1.0942, 0.03),
        ("azure-code-2023", 13.1513, 0.36),  # the notes of the spec say why
        ("mooncake-conversation", 3.0337, 0.01),
        ("mooncake-synthetic", 1.0113, 0.03),
    ],
)
def test_the_variation_of_gaps_is_near_the_published_one(name, published, error):
    assert variation(load(name)) == pytest.approx(published, rel=error)


@pytest.mark.parametrize("name", [name for name in names() if name not in (*MEASURED, TURNS)])
def test_without_published_times_the_arrivals_are_said_to_be_poisson(name):
    trace, rate = load(name), bundled(name).arrivals.rate
    assert (len(trace) - 1) / trace.span_s == pytest.approx(rate, rel=0.1)
    assert f"arrivals: a Poisson process of {rate} requests/s" in trace.describe()["source"]


def test_mooncake_conversation_stands_on_ticks_of_3_seconds():
    trace = load("mooncake-conversation")
    assert (trace.arrival % (3 * 10**9) == 0).all()
    assert len(np.unique(trace.arrival)) == 1_180


@pytest.mark.parametrize("name", MEASURED)
def test_prompt_and_output_have_the_published_rank_correlation(name):
    trace = load(name)
    assert np.corrcoef(ranks(trace.prompt), ranks(trace.output))[0, 1] == pytest.approx(
        bundled(name).spearman, abs=0.03
    )


def test_everything_bundled_names_its_source_and_licence():
    cards = {card.name: card for card in available()}
    assert tuple(cards) == names()
    assert set(MEASURED) < set(cards)
    assert (cards["azure-conv-2023"].rows, cards["azure-conv-2023"].licence) == (19_366, "CC-BY-4.0")
    assert all(card.source and card.citation and card.licence and card.notes for card in cards.values())


def test_a_stand_in_says_that_it_is_one():
    trace = load("azure-conv-2023", seed=7)
    assert trace.source.startswith("stand-in (seed 7) for: Azure LLM inference trace 2023, conversation; Patel et al.")
    assert (trace.report.format, trace.report.rows_in, trace.licence) == ("stand-in", 19_366, "CC-BY-4.0")


def test_an_unknown_spec_is_refused_with_the_nearest():
    with pytest.raises(
        TraceError, match=r"unknown bundled trace 'mooncake-conv'.* did you mean 'mooncake-conversation'"
    ):
        bundled("mooncake-conv")
