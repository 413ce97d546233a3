"""The nearest others of many vectors of one set at once: exactly, by cells, or by an engine of vector search."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.index.cells import by_cells
from graphrag_bench.index.engine import Engine
from graphrag_bench.registry import REGISTRY

Search = Literal["auto", "exact", "cells", "chnsw", "faiss", "hnswlib"]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows asked for, and vectors that may be near them

_DECIMALS = 6  # single-precision products agree to about 1e-7 whatever the batch; ranks must not hang on more
_EXACT = 1_000_000_000  # pairs that are scored one and all when nothing else is asked for: about ten seconds on a core
_BLOCK = 64 * 1024 * 1024 // 4  # scores held at a time
_PAIRS = 1 << 16  # pairs scored in double precision at a time
_SPARE = 10  # candidates asked of an engine beyond what is wanted


class Neighbours(NamedTuple):
    """The nearest vectors of some rows of a matrix.

    Attributes:
        ids: (rows, k) nearest first, ties by rising id; -1 where there are no more.
        cosines: (rows, k) to six places; 0 where there is no id.
        search: what found them, for the facts of a result.
    """

    ids: NDArray[np.int64]
    cosines: NDArray[np.float64]
    search: str


def nearest_neighbours(
    vectors: NDArray[np.float32],
    k: int,
    search: Search = "auto",
    seed: int = 0,
    rows: NDArray[np.int64] | None = None,
) -> Neighbours:
    """Return the nearest vectors of each row, never the row itself; a row of zeros has none and is nobody's.

    What is found is always scored in double precision, so searches differ in what they find and not in how it is ranked.

    Args:
        vectors: (n, width) unit vectors, or zeros.
        k: neighbours a row at most.
        search: exact scores all pairs; cells divides the vectors by k-means and looks through the cells nearest to a row;
            chnsw, faiss and hnswlib are the backends of vector search by these names; auto is exact up to a thousand
            million pairs (all of 31,000 vectors) and cells beyond.
        seed: of the cells, and of an engine that takes one.
        rows: whose neighbours are wanted; None for all.

    Returns:
        The neighbours, and the search that was used.

    Raises:
        UserError: The library of an engine is not installed.
    """
    n = len(vectors)
    wanted = np.arange(n) if rows is None else rows
    used = ("exact" if len(wanted) * n <= _EXACT else "cells") if search == "auto" else search
    there = np.flatnonzero(_any(vectors))
    asked = np.flatnonzero(np.isin(wanted, there)) if len(there) < n else np.arange(len(wanted))
    ids = np.full((len(wanted), max(k, 0)), -1, dtype=np.int64)
    cosines = np.zeros(ids.shape)
    if k > 0 and len(asked) and len(there) > 1:
        matrix = np.ascontiguousarray(vectors[there] if len(there) < n else vectors)
        queries = np.searchsorted(there, wanted[asked])
        for place, near in _candidates(matrix, queries, min(k, len(there) - 1), used, seed):
            best, rank, cosine = _ranked(matrix, queries, place, near, k)
            ids[asked[place[best]], rank] = there[near[best]]
            cosines[asked[place[best]], rank] = cosine
    return Neighbours(ids, cosines, used)


def pair_cosines(
    vectors: NDArray[np.float32], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the cosine of each pair of unit vectors, in double precision and to six places."""
    found = np.empty(len(left))
    for start in range(0, len(left), _PAIRS):
        part = slice(start, start + _PAIRS)
        found[part] = np.einsum(
            "ij,ij->i", vectors[left[part]].astype(np.float64), vectors[right[part]].astype(np.float64)
        )
    return found.round(_DECIMALS)


def _any(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Mark the rows that are not all zeros."""
    found = np.zeros(len(vectors), dtype=bool)
    for start in range(0, len(vectors), _PAIRS):
        found[start : start + _PAIRS] = vectors[start : start + _PAIRS].any(axis=1)
    return found


def _candidates(
    matrix: NDArray[np.float32], queries: NDArray[np.int64], k: int, search: str, seed: int
) -> Iterator[Pairs]:
    """Yield what may be near: all candidates of a query in one piece, a query by its place; pieces by rising place."""
    if search == "exact":
        return _exact(matrix, queries, k)
    if search == "cells":
        return by_cells(matrix, queries, k, seed)
    return _by_engine(matrix, queries, k, search, seed)


def _exact(matrix: NDArray[np.float32], queries: NDArray[np.int64], k: int) -> Iterator[Pairs]:
    n = len(matrix)
    step = max(1, _BLOCK // n)
    for start in range(0, len(queries), step):
        own = queries[start : start + step]
        scores = matrix[own] @ matrix.T
        scores[np.arange(len(own)), own] = -np.inf
        cut = np.partition(scores, n - k, axis=1)[:, n - k] - 2 * 10.0**-_DECIMALS
        place, near = np.nonzero(scores >= cut[:, None])
        yield start + place, near


def _by_engine(
    matrix: NDArray[np.float32], queries: NDArray[np.int64], k: int, search: str, seed: int
) -> Iterator[Pairs]:
    component = REGISTRY.get("index", search)
    settings: dict[str, Any] = {"seed": seed} if "seed" in component.settings else {}
    backend = component.call(**settings)
    with TemporaryDirectory(prefix="neighbours-") as name:
        folder = Path(name)
        backend.build(matrix, folder)
        engine: Engine = backend.open(folder)
        wanted = min(k + 1 + _SPARE, len(matrix))
        step = max(1, _BLOCK // 8 // wanted)
        for start in range(0, len(queries), step):
            own = queries[start : start + step]
            found = engine.candidates(matrix[own], wanted)
            place, column = np.nonzero((found >= 0) & (found != own[:, None]))
            yield start + place, found[place, column]


def _ranked(
    matrix: NDArray[np.float32],
    queries: NDArray[np.int64],
    place: NDArray[np.int64],
    near: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return which pairs are among the ``k`` best of their query, their ranks there, and their cosines."""
    cosines = pair_cosines(matrix, queries[place], near)
    order = np.lexsort((near, -cosines, place))
    sorted_places = place[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_places, sorted_places)
    best = rank < k
    return order[best], rank[best], cosines[order[best]]
