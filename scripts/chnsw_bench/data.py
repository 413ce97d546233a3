"""Hierarchies of unit vectors, queries for them, and the exact answers that recall is counted against."""

from dataclasses import dataclass

import numpy as np

# A child is its parent plus noise of this norm, which shrinks by this factor a layer downward: siblings' cosine is about .74 at
# the top and .87 at the bottom. How many children fall to a parent is log-normal with this sigma, as communities are of all
# sizes. At 200,000 x 384 in 11 layers one faiss graph a layer has a recall of .996, .998 and .999 at ef 16, 40 and 100.
NOISE, SHRINK, SKEW = 0.6, 0.95, 0.5
TIE = 2e-6  # two float32 products of unit vectors this near are equal: whichever of the ids is returned is right
BLOCK = 256  # queries a matrix product


@dataclass(frozen=True)
class Data:
    """Layers bottom first, float32 (n_i, dim) of unit rows, and unit queries (q, dim)."""

    layers: list[np.ndarray]
    queries: np.ndarray


def sizes(bottom: int, layers: int, ratio: float, floor: int) -> list[int]:
    """Return the sizes bottom first: each the one below divided by the ratio, but never less than the floor."""
    out = [bottom]
    while len(out) < layers:
        out.append(max(round(out[-1] / ratio), min(floor, out[-1])))
    return out


def hierarchy(kind: str, counts: list[int], dim: int, queries: int, seed: int) -> Data:
    """Make the vectors.

    ``random``: every layer and the queries are independent directions. ``clustered``: a tree grown from random directions at
    the top; every vector of a layer is one of the layer above plus Gaussian noise, made a unit again. Each vector of the layer
    above has one such child at least, the others fall to them by chance, to some more than to others. Queries are further
    children of the layer above the bottom, evenly over it, so they come from where the bottom's vectors do.
    """
    rng = np.random.default_rng([seed, 0 if kind == "random" else 1])
    if kind == "random":
        return Data([_units(rng, count, dim) for count in counts], _units(rng, queries, dim))
    layers = [_units(rng, counts[-1], dim)]
    for depth, count in enumerate(reversed(counts[:-1])):
        above, noise = layers[-1], NOISE * SHRINK**depth
        drawn = np.exp(SKEW * rng.standard_normal(len(above)))
        more = rng.choice(len(above), count - len(above), p=drawn / drawn.sum())
        parents = np.concatenate([np.arange(len(above)), more])
        layers.append(_near(rng, above[rng.permutation(parents)], noise))
    above = layers[-2] if len(layers) > 1 else layers[-1]
    noise = NOISE * SHRINK ** max(len(layers) - 2, 0)
    return Data(layers[::-1], _near(rng, above[rng.integers(0, len(above), queries)], noise))


def _units(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    return _normalised(rng.standard_normal((count, dim), np.float32))


def _near(rng: np.random.Generator, centres: np.ndarray, noise: float) -> np.ndarray:
    return _normalised(centres + np.float32(noise) * _units(rng, *centres.shape))


def _normalised(rows: np.ndarray) -> np.ndarray:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows, np.float32)


def exact(layers: list[np.ndarray], queries: np.ndarray, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ids and products of the k nearest of every layer, best first, by blocked matrix products."""
    out = []
    for layer in layers:
        best, parts = min(k, len(layer)), []
        for start in range(0, len(queries), BLOCK):
            products = queries[start : start + BLOCK] @ layer.T
            ids = np.argpartition(products, len(layer) - best, axis=1)[:, len(layer) - best :]
            found = np.take_along_axis(products, ids, axis=1)
            order = np.argsort(-found, axis=1, kind="stable")
            parts.append((np.take_along_axis(ids, order, axis=1), np.take_along_axis(found, order, axis=1)))
        out.append((np.concatenate([ids for ids, _ in parts]), np.concatenate([found for _, found in parts])))
    return out


def recall(data: Data, truth: list[tuple[np.ndarray, np.ndarray]], found: list[np.ndarray]) -> list[float]:
    """Return each layer's mean over the queries of: how much of a query's own k nearest it was given.

    An id counts if it is as near as the query's k-th nearest is, and once only: -1 and repetitions count nothing.
    """
    out = []
    for layer, (_, products), ids in zip(data.layers, truth, found, strict=True):
        ids = np.sort(ids, axis=1)
        counts = (ids >= 0) & np.concatenate([np.ones((len(ids), 1), bool), ids[:, 1:] != ids[:, :-1]], axis=1)
        near = np.einsum("qd,qkd->qk", data.queries, layer[np.maximum(ids, 0)], dtype=np.float32, optimize=False)
        hits = (counts & (near >= products[:, -1:] - TIE)).sum(1)
        out.append(float(np.minimum(hits, products.shape[1]).mean() / products.shape[1]))
    return out
