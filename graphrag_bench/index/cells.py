"""Nearest neighbours by cells: k-means divides the vectors, and a row looks through the cells whose centres are nearest.

An inverted file (Jégou, Douze and Schmid, 2011) without codes. Where the neighbours of very many rows are wanted at once,
a cell is one matrix product for all rows that look through it, which a walk over a proximity graph cannot be. What is found
is as good as the vectors are clustered: of the three nearest of 200,000 in topics, drawn as `scripts/bench_clustering.py`
draws them, .995; of as many drawn at random from the sphere, .09.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_ITERATIONS = 8
_SAMPLE = 64  # vectors a cell that k-means sees
_PROBES = 8  # cells a row looks through
_BLOCK = 32 * 1024 * 1024 // 4  # scores held at a time
_FEW = 8  # up to so many of a row's best are found faster by one pass each than by a partition

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def by_cells(
    matrix: NDArray[np.float32], queries: NDArray[np.int64], k: int, seed: int, probes: int = _PROBES
) -> Iterator[Pairs]:
    """Yield for pieces of the queries (places, ids): up to ``k`` others near each, in no order.

    Args:
        matrix: (n, width) unit vectors; there are about √n cells.
        queries: rows of the matrix.
        k: neighbours a query.
        seed: of the vectors that k-means sees and starts from.
        probes: cells a query looks through.
    """
    centres = _centres(matrix, round(len(matrix) ** 0.5), seed)
    probes = min(probes, len(centres))
    cell = _nearest_cells(matrix, np.arange(len(matrix)), centres, 1).ravel()
    members = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[members], np.arange(len(centres) + 1))
    probed = _nearest_cells(matrix, queries, centres, probes)
    visits = np.argsort(probed.ravel(), kind="stable")  # (query, probe) pairs by cell
    visit_starts = np.searchsorted(probed.ravel()[visits], np.arange(len(centres) + 1))
    ids = np.full((len(queries) * probes, k), -1, dtype=np.int32)
    scores = np.full((len(queries) * probes, k), -np.inf, dtype=np.float32)
    for number in range(len(centres)):
        inside = members[starts[number] : starts[number + 1]]
        if not len(inside):
            continue
        vectors = np.ascontiguousarray(matrix[inside].T)
        mine = visits[visit_starts[number] : visit_starts[number + 1]]
        step = max(1, _BLOCK // len(inside))
        for start in range(0, len(mine), step):
            rows = mine[start : start + step]
            own = queries[rows // probes]
            products = matrix[own] @ vectors
            at = np.minimum(np.searchsorted(inside, own), len(inside) - 1)
            found = inside[at] == own  # the query itself
            products[found, at[found]] = -np.inf
            columns = best_columns(products, min(k, len(inside)))
            ids[rows, : columns.shape[1]] = inside[columns]
            scores[rows, : columns.shape[1]] = np.take_along_axis(products, columns, axis=1)
    yield from _merged(ids.reshape(len(queries), -1), scores.reshape(len(queries), -1), k)


def best_columns(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the columns of each row's ``k`` greatest values; the scores are left as they were."""
    if k > _FEW or k == scores.shape[1]:
        width = scores.shape[1]
        return np.argpartition(scores, width - k, axis=1)[:, width - k :]
    rows = np.arange(len(scores))
    columns = np.empty((len(scores), k), dtype=np.int64)
    values = np.empty((len(scores), k), dtype=np.float32)
    for at in range(k):
        columns[:, at] = scores.argmax(axis=1)
        values[:, at] = scores[rows, columns[:, at]]
        scores[rows, columns[:, at]] = -np.inf
    np.put_along_axis(scores, columns[:, ::-1], values[:, ::-1], axis=1)  # where all is -inf a column comes again
    return columns


def _merged(ids: NDArray[np.int32], scores: NDArray[np.float32], k: int) -> Iterator[Pairs]:
    """Yield the best ``k`` of what a query's cells gave; a vector is in one cell, so none comes twice."""
    step = max(1, _BLOCK // max(ids.shape[1], 1))
    for start in range(0, len(ids), step):
        part = scores[start : start + step]
        columns = best_columns(part, min(k, part.shape[1]))
        place, column = np.nonzero(np.take_along_axis(part, columns, axis=1) > -np.inf)
        yield start + place, ids[start + place, columns[place, column]].astype(np.int64)


def _centres(matrix: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Return the unit centres of spherical k-means on a sample; a cell left empty keeps its centre."""
    generator = np.random.default_rng(seed)
    sample = np.sort(generator.choice(len(matrix), min(len(matrix), _SAMPLE * count), replace=False))
    vectors = np.ascontiguousarray(matrix[sample])
    centres = vectors[np.sort(generator.choice(len(vectors), count, replace=False))]
    for _ in range(_ITERATIONS):
        cell = _nearest_cells(vectors, np.arange(len(vectors)), centres, 1).ravel()
        chosen = sparse.csr_array(
            (np.ones(len(cell), np.float32), cell, np.arange(len(cell) + 1)), shape=(len(cell), count)
        )
        sums = np.asarray(chosen.T @ vectors)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(length > 0, sums / np.maximum(length, np.finfo(np.float32).tiny), centres).astype(np.float32)
    return centres


def _nearest_cells(
    matrix: NDArray[np.float32], rows: NDArray[np.int64], centres: NDArray[np.float32], count: int
) -> NDArray[np.int64]:
    """Return the ``count`` cells nearest to each row: (rows, count)."""
    found = np.empty((len(rows), count), dtype=np.int64)
    step = max(1, _BLOCK // len(centres))
    for start in range(0, len(rows), step):
        scores = matrix[rows[start : start + step]] @ centres.T
        found[start : start + step] = best_columns(scores, count)
    return found
