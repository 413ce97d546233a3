"""The bootstrap against scipy's, and where it degenerates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphrag_bench.evaluation import bootstrap
from graphrag_bench.evaluation.bootstrap import interval


@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_agrees_with_scipy(kind: str) -> None:
    generator = np.random.default_rng(7)
    sample = (generator.random(300) < 0.6).astype(float) if kind == "binary" else generator.beta(2, 3, 300)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, confidence_level=0.95, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    ours = interval(sample, seed=3, resamples=20_000)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_coverage_is_about_what_it_says() -> None:
    generator = np.random.default_rng(11)
    hits = 0
    for trial in range(300):
        low, high = interval((generator.random(200) < 0.5).astype(float), seed=trial, resamples=500) or (1.0, 0.0)
        hits += low <= 0.5 <= high
    assert 0.90 <= hits / 300 <= 0.985


def test_degenerate_samples() -> None:
    assert interval([]) is None
    assert interval([0.25]) == (0.25, 0.25)
    assert interval([1.0] * 50) == (1.0, 1.0)


def test_the_seed_decides_and_the_block_size_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = np.random.default_rng(0).random(97)
    whole = interval(sample, seed=5)
    assert interval(sample, seed=5) == whole
    assert interval(sample, seed=6) != whole
    monkeypatch.setattr(bootstrap, "_BLOCK", 1000)
    assert interval(sample, seed=5) == pytest.approx(whole, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_stays_within_the_sample(sample: list[float]) -> None:
    low, high = interval(sample, resamples=50) or (2.0, -1.0)
    assert min(sample) - 1e-12 <= low <= high <= max(sample) + 1e-12
