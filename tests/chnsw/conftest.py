"""Small hierarchies and their exact answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Layers = list[np.ndarray]


def _tree(
    sizes: list[int], dim: int, seed: int = 0, queries: int = 40, noise: float = 0.6
) -> tuple[Layers, np.ndarray]:
    rng = np.random.default_rng(seed)

    def unit(rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def near(centres: np.ndarray, depth: int) -> np.ndarray:
        return unit(centres + noise * 0.9**depth * unit(rng.standard_normal(centres.shape)))

    layers = [unit(rng.standard_normal((sizes[-1], dim)))]
    for depth, size in enumerate(reversed(sizes[:-1])):
        layers.append(near(layers[-1][rng.integers(0, len(layers[-1]), size)], depth))
    above = layers[-2] if len(layers) > 1 else layers[-1]
    return layers[::-1], near(above[rng.integers(0, len(above), queries)], len(sizes))


def _distances(metric: str, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    a, b = queries.astype(np.float64), rows.astype(np.float64)
    if metric == "l2":
        return np.asarray(((a[:, None] - b[None]) ** 2).sum(-1))
    if metric == "cosine":
        a, b = a / np.linalg.norm(a, axis=1, keepdims=True), b / np.linalg.norm(b, axis=1, keepdims=True)
        return np.asarray(1 - a @ b.T)
    return np.asarray(-(a @ b.T))


def _recall(metric: str, queries: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> float:
    distances = _distances(metric, queries, rows)
    k = min(ids.shape[1], len(rows))
    kth = np.sort(distances, axis=1)[:, k - 1 : k]
    assert all(len(set(row[:k])) == k for row in ids.tolist())
    found = np.take_along_axis(distances, ids[:, :k], axis=1)
    return float((found <= kth + 1e-5).mean())


@pytest.fixture
def tree() -> Callable[..., tuple[Layers, np.ndarray]]:
    """Make a clustered hierarchy of unit vectors, bottom first, and queries near the bottom."""
    return _tree


@pytest.fixture
def distances() -> Callable[[str, np.ndarray, np.ndarray], np.ndarray]:
    """Compute all distances in double precision."""
    return _distances


@pytest.fixture
def recall() -> Callable[[str, np.ndarray, np.ndarray, np.ndarray], Any]:
    """Compute the mean share of a query's own nearest that were found; ties are right."""
    return _recall
