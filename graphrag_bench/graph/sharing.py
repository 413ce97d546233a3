"""Pairs of rows that share columns of a sparse binary matrix: the products of B Bᵀ, a block of rows at a time.

A column of c rows makes c (c - 1) / 2 pairs, a clique. Their sum over the columns is known before any pair is made, and
bounds both time and memory; columns of too many rows are left out by the caller's limit.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_BLOCK = 1 << 22  # pairs with their column held at a time, before they are merged
Ids = NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of rows, source < target, sorted: how many columns each shares, and its rarest ones (-1 where there are fewer)."""

    source: Ids
    target: Ids
    shared: Ids
    rarest: Ids  # (pairs, named), rarest first, ties by rising column


def pairs_of(columns: Ids) -> int:
    """Return how many pairs columns of these sizes make, a pair counted once a column."""
    return int((columns * (columns - 1) // 2).sum())


def sharing(matrix: sparse.csr_array, min_shared: int, named: int) -> Pairs:
    """Return the pairs of rows that share at least ``min_shared`` columns.

    Args:
        matrix: (rows, columns), binary, with sorted indices.
        min_shared: columns shared at least.
        named: columns to name of those a pair shares.
    """
    blocks = list(_blocks(matrix, min_shared, named))
    if not blocks:
        none = np.empty(0, np.int64)
        return Pairs(none, none, none, np.empty((0, named), np.int64))
    return Pairs(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


def _blocks(matrix: sparse.csr_array, min_shared: int, named: int) -> Iterator[Pairs]:
    by_column = matrix.tocsc()
    sizes = np.diff(by_column.indptr).astype(np.int64)
    by_rank = np.lexsort((np.arange(len(sizes)), sizes))
    rank = np.empty(len(sizes), np.int64)
    rank[by_rank] = np.arange(len(sizes))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    entries = np.lexsort((rows, matrix.indices))  # column by column, rows rising: where each entry stands in its column
    place = np.empty(len(rows), np.int64)
    place[entries] = np.arange(len(rows))
    after = by_column.indptr[1:].astype(np.int64)[matrix.indices] - place - 1  # rows of the column still to come
    total = np.concatenate([[0], np.cumsum(after)])
    start = 0
    while start < len(rows) and total[start] < total[-1]:
        stop = max(int(np.searchsorted(total, total[start] + _BLOCK, "right")) - 1, start + 1)
        if stop < len(rows):  # whole rows only: a pair's columns must meet in one block
            first = int(matrix.indptr[rows[stop]])
            stop = first if first > start else int(matrix.indptr[rows[stop] + 1])
        count = after[start:stop]
        entry = np.repeat(np.arange(start, stop), count)
        step = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        target = by_column.indices[place[entry] + 1 + step].astype(np.int64)
        if len(entry):
            yield _merged(rows[entry], target, rank[matrix.indices[entry]], by_rank, min_shared, named)
        start = stop


def _merged(source: Ids, target: Ids, rank: Ids, by_rank: Ids, min_shared: int, named: int) -> Pairs:
    order = np.lexsort((rank, target, source))
    source, target, rank = source[order], target[order], rank[order]
    first = np.flatnonzero(np.r_[True, (source[1:] != source[:-1]) | (target[1:] != target[:-1])])
    shared = np.diff(np.r_[first, len(source)])
    first, shared = first[shared >= min_shared], shared[shared >= min_shared]
    rarest = np.full((len(first), named), -1, np.int64)
    for at in range(named):
        there = shared > at
        rarest[there, at] = by_rank[rank[first[there] + at]]
    return Pairs(source[first], target[first], shared.astype(np.int64), rarest)
