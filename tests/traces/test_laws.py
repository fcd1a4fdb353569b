import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces import TraceError
from traces.laws import LAWS, Empirical, Exponential, Fixed, Lognormal, Quantiles, Uniform
from traces.strict import one_of

EVEN = (np.arange(100_000) + 0.5) / 100_000


def test_an_exponential_has_its_mean_and_its_quantiles():
    law = Exponential(mean=200)
    assert law.at(EVEN).mean() == pytest.approx(200, rel=0.002)
    assert law.at(np.array([0.5, 0.9])).tolist() == [round(200 * np.log(2)), round(200 * np.log(10))]


def test_clipped_lengths_pile_up_at_the_bound_and_rejected_ones_do_not():
    """A share exp(-1) of an exponential lies beyond its mean."""
    clipped, rejected = (Exponential(mean=100, most=100, beyond=how).at(EVEN) for how in ("clipped", "rejected"))
    assert clipped.max() == rejected.max() == 100
    assert (clipped == 100).mean() == pytest.approx(np.exp(-0.995), abs=0.002)
    assert (rejected == 100).mean() == pytest.approx(0.01 / (np.e - 1), rel=0.02)    # its density there
    # What rounds to 1 ... 100 stretches over one mean, from 0.5 on.
    assert rejected.mean() == pytest.approx(0.5 + 100 * (1 - 1 / (np.e - 1)), rel=0.001)


def test_a_lognormal_has_its_median_and_its_sigma():
    lengths = Lognormal(median=1000, sigma=0.5).at(EVEN)
    assert np.median(lengths) == pytest.approx(1000, abs=1)
    assert np.log(lengths).std() == pytest.approx(0.5, rel=0.005)
    within = Lognormal(median=1000, sigma=2, least=500, most=2000, beyond="rejected").at(EVEN)
    assert (within.min(), within.max()) == (500, 2000)
    assert np.median(within) == pytest.approx(1000, abs=5)    # the bounds are even about it


def test_a_uniform_law_meets_both_ends_equally_often():
    lengths = Uniform(3, 7).at(EVEN)
    assert np.bincount(lengths).tolist() == [0, 0, 0, 20_000, 20_000, 20_000, 20_000, 20_000]
    assert Uniform(5, 5).at(np.array([0, 1.0])).tolist() == [5, 5]


def test_a_fixed_and_an_empirical_law(tmp_path):
    assert Fixed(9).at(np.array([0.0, 0.3, 1.0])).tolist() == [9, 9, 9]
    (tmp_path / "lengths.txt").write_text("30\n10\n10\n50\n")
    law = Empirical(str(tmp_path / "lengths.txt"))
    assert law.at(np.array([0, 0.3, 0.5, 0.74, 0.75, 1.0])).tolist() == [10, 10, 30, 30, 50, 50]


@pytest.mark.parametrize(("given", "words"), [
    ({"kind": "exponential", "mean": 0}, "mean must be a number above 0, not 0"),
    ({"kind": "exponential", "mean": float("nan")}, "mean must be a number above 0, not nan"),
    ({"kind": "exponential", "mean": 5, "most": 9}, "beyond must say whether lengths outside"),
    ({"kind": "exponential", "mean": 5, "most": 9, "beyond": "dropped"}, "beyond must be clipped or rejected"),
    ({"kind": "exponential"}, "mean must be a number above 0"),
    ({"kind": "lognormal", "median": 5}, "sigma must be a number above 0"),
    ({"kind": "lognormal", "median": 5, "sigma": 101}, "sigma must be a number above 0 and at most 100, not 101"),
    ({"kind": "quantiles", "tokens": [-0.5, *[5] * 100]}, "tokens must be a number of at least 0, not -0.5"),
    ({"kind": "uniform", "least": 9, "most": 3}, "most must be a whole number of at least 9, not 3"),
    ({"kind": "uniform", "least": 9}, "lacks most"), ({"kind": "fixed", "tokens": 1.5}, "must be a whole number"),
    ({"kind": "fixed", "token": 3}, "unknown key 'token': did you mean 'tokens'?"),
    ({"kind": "quantiles", "tokens": [1, 2]}, "tokens must list 101 numbers"),
    ({"kind": "quantiles", "tokens": [5] * 100 + [4]}, "tokens must not fall"),
    ({"kind": "quantiles", "tokens": [5] * 101, "tail": [9]}, "tokens must not fall"),
    ({"kind": "quantiles", "tokens": ["x"] * 101}, "tokens must be a number"),
    ({"kind": "empirical", "file": "nowhere.txt"}, "No such file"),
    ({"kind": "empirical", "file": 3}, "must be a path"),
    ({"kind": "zipf"}, "unknown kind 'zipf'"), ({"tokens": 3}, "must be a mapping with a kind"), (7, "with a kind"),
    ({"kind": ["a"]}, "unknown kind"), (None, "with a kind"),
])
def test_what_is_no_law_is_refused_in_one_line(given, words):
    with pytest.raises(TraceError) as error:
        one_of(LAWS, given, "prompt")
    assert str(error.value).startswith("prompt: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("law", [
    Exponential(mean=1, least=1000, most=1001, beyond="rejected"),
    Lognormal(median=1, sigma=0.01, least=1000, beyond="rejected")])
def test_bounds_that_leave_nothing_to_draw_are_refused(law):
    with pytest.raises(TraceError, match=r"^almost no length lies between 1000 and \d+ tokens: clip, or move them$"):
        law.at(EVEN)


@pytest.mark.parametrize("content", ["", "1\n0\n", "5 x 7", "-3", "1.5", "9" * 30, b"\xff\xfe"])
def test_a_file_of_no_lengths_is_refused(tmp_path, content):
    path = tmp_path / "bad.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TraceError, match=r"bad\.txt"):
        Empirical(str(path))


def test_lengths_come_from_a_regular_file_of_bounded_size(tmp_path, monkeypatch):
    with pytest.raises(TraceError, match=r"^file /dev/zero is no regular"):
        Empirical("/dev/zero")
    monkeypatch.setattr("traces.laws.MOST_NUMBERS", 8)
    (tmp_path / "long.txt").write_text("5\n" * 5)
    with pytest.raises(TraceError, match=r"long\.txt: holds more than"):
        Empirical(str(tmp_path / "long.txt"))


@given(u=st.lists(st.floats(0, 1), min_size=2, max_size=30), law=st.sampled_from([
    Exponential(mean=3), Exponential(mean=1e12), Lognormal(median=1, sigma=3), Lognormal(median=1e15, sigma=90),
    Uniform(1, 10**15), Quantiles(list(range(101)), [99.5]),
    Exponential(mean=50, least=40, most=41, beyond="rejected")]))
def test_lengths_rise_with_the_probability_and_are_at_least_1(u, law):
    lengths = law.at(np.sort(np.array(u)))
    assert (np.diff(lengths) >= 0).all()
    assert lengths.min() >= 1
