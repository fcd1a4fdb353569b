import numpy as np
import pytest

from traces.laws import Quantiles
from traces.lengths import sample_lengths, stratified

# Tokens double from one probability in a hundred to the next at first, then stand still.
STEPS = Quantiles([2**i for i in range(10)] + [512] * 90 + [4096], [512] * 8 + [1024])


def ranks(values: np.ndarray) -> np.ndarray:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2)[places]


def test_listed_probabilities_give_the_listed_tokens():
    assert STEPS.at(np.array([0, 0.01, 0.05, 0.5, 0.999, 1])).tolist() == [1, 2, 32, 512, 1024, 4096]


def test_between_them_the_logarithm_is_linear():
    assert STEPS.at(np.array([0.055, 0.9995])).tolist() == [45, 2048]  # sqrt(32 * 64) and sqrt(1024 * 4096)


def test_a_quantile_of_0_tokens_counts_as_1():
    assert Quantiles([0] * 101, [0]).at(np.array([0, 0.3, 1.0])).tolist() == [1, 1, 1]


def test_stratified_probabilities_follow_the_scores_one_in_each_slot():
    u = stratified(np.array([5.0, -1.0, 2.0, 9.0]), np.random.default_rng(0))
    assert np.floor(u * 4).tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize("spearman", [-0.5, 0.0, 0.7])
def test_the_rank_correlation_is_the_one_asked_for(spearman):
    smooth = Quantiles([100 + 50 * i for i in range(101)])
    prompt, output = sample_lengths(smooth, smooth, spearman, 40_000, np.random.default_rng(0))
    assert np.corrcoef(ranks(prompt), ranks(output))[0, 1] == pytest.approx(spearman, abs=0.015)
    assert np.percentile(prompt, [1, 50, 99]) == pytest.approx([150, 2600, 5050], rel=0.005)
