import re
from dataclasses import replace
from pathlib import Path

import pytest

from cost_models import MODELS, Profile, Regimes, StepShape, bundled_profiles
from cost_models.catalogue import PROFILED
from cost_models.fits import Range, Regime
from cost_models.profile import MIXED, Host, read_profile

MS = 1_000_000


ROUND = read_profile(Path(__file__).with_name("round.yaml"))


def regimes(range: Range | None = None, host: Host = ROUND.host, **changes: Regime) -> Regimes:
    """The round profile with some parts replaced."""
    assert ROUND.fit.regimes is not None
    fit = replace(ROUND.fit, range=range, regimes=replace(ROUND.fit.regimes, **changes))
    return Regimes(replace(ROUND, fit=fit, host=host))


@pytest.mark.parametrize(
    ("shape", "ms"),
    [
        # 5 + 1.5 host, 0.25 + 0.125 host a sequence, 0.001 a token of context
        (StepShape(1, 100), 6.5 + 0.375 + 0.1),
        (StepShape(8, 8000), 6.5 + 3.0 + 8.0),
        # 4 + 1.5 host + 0.125 host a chunk, 0.02 a token, 0.000002 a token squared
        (StepShape(0, 0, ((1000, 0),)), 5.5 + 0.125 + 20.0 + 2.0),
        (StepShape(0, 0, ((1000, 500),)), 5.5 + 0.125 + 20.0 + 0.000002 * (1500**2 - 500**2)),
        (StepShape(0, 0, ((600, 0), (400, 200))), 5.5 + 0.25 + 20.0 + 0.72 + 0.64),
        # the decode base once; context term x 1.4, square term x 0.5
        (StepShape(8, 8000, ((1000, 0),)), 6.5 + 3.0 + 11.2 + 0.125 + 20.0 + 1.0),
    ],
)
def test_each_regime_by_hand(shape: StepShape, ms: float) -> None:
    assert regimes().time(shape) == round(ms * MS)


SIX = Regime(5, 2, 0.5, 0.25, 0.001, 0.0001)


@pytest.mark.parametrize(
    ("kind", "shape", "ms"),
    [
        # without chunks the rows of the matrices are the decodes: 4 hide behind the weights, 8 do not
        ("decode", StepShape(4, 100), 5 + 2 + 4 * 0.25 + 0.1),
        ("decode", StepShape(8, 100), 5 + 4 + 8 * 0.25 + 0.1),
        # with chunks they are the prompt tokens, and the decodes pay by the sequence
        ("prefill", StepShape(0, 0, ((3, 0),)), 5 + 2 + 0.0009),
        ("prefill", StepShape(0, 0, ((10, 0), (10, 10))), 5 + 10 + 0.0001 * (100 + 300)),
        ("mixed", StepShape(8, 100, ((3, 0),)), 5 + 2 + 8 * 0.25 + 0.1 + 0.0009),
        ("mixed", StepShape(8, 100, ((10, 10),)), 5 + 5 + 8 * 0.25 + 0.1 + 0.03),
    ],
)
def test_six_coefficients_by_hand(kind: str, shape: StepShape, ms: float) -> None:
    assert regimes(host=Host("assumed", 0), **{kind: SIX}).time(shape) == round(ms * MS)


def test_a_padded_batch_pays_for_what_it_computes() -> None:
    # Rows of 10, 20 and 90 tokens; padded to 90 they read 270.
    ragged, padded = StepShape(3, 120), StepShape(3, 270, padded=150, layout="padded")
    assert regimes().time(padded) - regimes().time(ragged) == round(0.150 * MS)


def test_rounding_is_to_the_nearest_nanosecond() -> None:
    # 0.4, 0.8, 1.2 ns: at least 1, then to the nearest
    tiny = regimes(decode=Regime(0, per_context_token_ms=0.4e-6), host=Host("assumed", 0))
    assert tiny.decode_times(StepShape(1, 1), 5) == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("bounds", "shape", "answer"),
    [
        ({"decodes": (1, 256)}, StepShape(256, 10), True),
        ({"decodes": (1, 256)}, StepShape(257, 10), False),
        ({"context": (10, 99)}, StepShape(1, 9), False),
        ({"context": (10, 99)}, StepShape(1, 99), True),
        ({"decodes": (2, 9)}, StepShape(0, 0, ((5, 0),)), True),
        ({"chunk_tokens": (1, 8192)}, StepShape(4, 40), True),
        ({"chunk_tokens": (1, 8192)}, StepShape(4, 40, ((8000, 0), (193, 0))), False),
        ({"prior_tokens": (0, 100)}, StepShape(0, 0, ((5, 60), (5, 41))), False),
        ({"prior_tokens": (0, 100)}, StepShape(0, 0, ((5, 60), (5, 40))), True),
    ],
)
def test_range(bounds: dict[str, tuple[int, int]], shape: StepShape, answer: bool) -> None:
    assert regimes(range=Range(**bounds)).in_range(shape) is answer


def test_no_stated_range_is_no_answer() -> None:
    assert regimes().in_range(StepShape(10**9, 10**9)) is None


def kernels_ms(profile: Profile, decodes: int, context: int) -> float:
    """A decode step in ms without the host's share."""
    host = profile.host.h0_ms + profile.host.h1_ms * decodes
    return Regimes(profile).time(StepShape(decodes, decodes * context)) / MS - host


@pytest.mark.parametrize(
    ("gpu", "measured"),
    [
        ("a100-80", (11.9, 15.6, 43.7)),
        ("h100-80", (6.2, 8.3, 19.6)),
        ("h200", (4.9, 6.3, 15.4)),
        ("b200", (3.5, 4.2, 9.2)),
    ],
)
def test_bundled_8b_profiles_meet_measured_decode_kernels(gpu: str, measured: tuple[float, ...]) -> None:
    profile = bundled_profiles()[f"llama-3.1-8b-{gpu}-bf16"]
    for decodes, ms in zip((1, 32, 256), measured, strict=True):
        assert kernels_ms(profile, decodes, 1024) == pytest.approx(ms, rel=0.1)


def test_h100_step_of_the_bundled_profile_by_hand() -> None:
    model = Regimes(bundled_profiles()["llama-3.1-8b-h100-80-bf16"])
    # 6.3584 + 1.5, 0.011504 a sequence, 4.11e-5 a token of context
    assert model.time(StepShape(32, 32 * 1024)) == round((7.8584 + 0.368128 + 1.3467648) * MS)
    # 6.3106 + 1.5, 0.013175 a token, 1.522e-6 a square
    assert model.time(StepShape(0, 0, ((2048, 0),))) == round((7.8106 + 26.9824 + 6.383730688) * MS)
    # one decode base, attention x 1.4 and x 0.85
    mixed = 7.8584 + 0.368128 + 1.4 * 1.3467648 + 26.9824 + 0.85 * 6.383730688
    assert model.time(StepShape(32, 32 * 1024, ((2048, 0),))) == pytest.approx(mixed * MS, abs=1)


def test_bundled_profiles_are_these() -> None:
    layouts = {(profile.model, profile.gpu, profile.tensor_parallel_size) for profile in bundled_profiles().values()}
    assert layouts == {
        *((model, gpu, size) for model, size in (("llama-3.1-8b", 1), ("llama-3.1-70b", 4))
          for gpu in ("a100-80", "h100-80", "h200", "b200")),
        *(("llama-2-70b", gpu, size) for gpu in ("a100-80", "h100-80") for size in (4, 8)),
        ("llama-2-70b", "a100-80", 2), ("opt-13b", "a100-80", 1),
        ("llama-3.1-8b", "rtx-4090", 1), ("llama-3.1-8b", "rtx-pro-6000", 1),
    }


@pytest.mark.parametrize("profile", bundled_profiles().values(), ids=bundled_profiles().keys())
def test_a_bundled_profile_names_its_source_and_licence(profile: Profile) -> None:
    assert profile.origin.kind == "derived"
    assert re.search(r"\((MIT|Apache-2\.0)\b", profile.origin.source)
    assert (profile.origin.tuned is not None) == (profile.gpu == "rtx-pro-6000")
    model = PROFILED[profile.fit.form](profile)
    assert f"mixed steps {MIXED[profile.fit.mixed_origin]}" in model.origin
    unseen = [error for error in vars(profile.fit.errors).values() if error and error.held_out]
    assert all(error.bias_percent is not None and error.points for error in unseen)


AFFINE = {name: profile for name, profile in bundled_profiles().items() if "aiconfigurator" in profile.origin.source}


@pytest.mark.parametrize("profile", AFFINE.values(), ids=AFFINE.keys())
def test_a_bundled_profile_says_what_is_not_measured(profile: Profile) -> None:
    assert "aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA" in profile.origin.source
    assert profile.origin.kind == "derived"
    assert profile.fit.regimes is not None
    decode, prefill, mixed = vars(profile.fit.regimes).values()
    assert mixed.origin == "transferred"
    assert (mixed.base_ms, mixed.per_seq_ms, mixed.per_token_ms) == (
        decode.base_ms, decode.per_seq_ms, prefill.per_token_ms)
    assert mixed.per_context_token_ms == pytest.approx(1.4 * decode.per_context_token_ms, rel=1e-12)
    assert mixed.per_token_sq_ms == pytest.approx(0.85 * prefill.per_token_sq_ms, rel=1e-12)
    assert (profile.host.origin, profile.host.h0_ms, profile.host.h1_ms) == ("assumed", 1.5, 0.0)
    assert profile.model in MODELS
    assert profile.fit.range is not None
    assert profile.fit.range.decodes == (1, 512)
    assert "mixed steps put together by factors from other GPUs; host 1.5 ms a step assumed" in Regimes(profile).origin
