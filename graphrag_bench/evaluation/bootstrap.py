"""Percentile bootstrap over questions."""

import numpy as np
import numpy.typing as npt

_BLOCK = 4_000_000  # indices drawn at once: bounds memory at some 60 MB whatever the number of questions


def interval(
    values: npt.ArrayLike, *, seed: int = 0, resamples: int = 2000, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the percentile bootstrap interval of the mean.

    Questions are drawn with replacement ``resamples`` times; the interval runs from the (1 − level)/2 to the
    (1 + level)/2 quantile of the resampled means. The same seed and number of questions draw the same questions, so the
    metrics of a run (and runs over the same questions) share their resamples.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap (1993), §13.3.

    Args:
        values: One value a question, shape (n,), no missing ones.
        seed: Of the generator.
        resamples: How many resamples.
        level: Coverage in (0, 1).

    Returns:
        (low, high); None for no values, (v, v) for a single one.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        return None
    if sample.size == 1 or sample.min() == sample.max():
        return float(sample[0]), float(sample[0])
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // sample.size)
    means = [
        sample[generator.integers(0, sample.size, size=(min(rows, resamples - start), sample.size))].mean(axis=1)
        for start in range(0, resamples, rows)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
