"""How an operator makes one question's row out of what it found: merged, ranked, cut; and a ranking out of such rows.

Where an operator ranks by an order that is no one number (first by this, then by that), the score of an element is one over
its place in that order, and what stands equal shares its place: 1, 1/2, 1/2, 1/4. So the scores say the order exactly,
do not depend on other questions, and rankings joined by their sum fuse as reciprocal ranks do.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.pipeline.values import Ranking, Row, Scores, order

R = TypeVar("R", bound=Ranking)
Array = NDArray[Any]
NOTHING = Row(np.empty(0, np.int64), np.empty(0))


def stack(kind: type[R], rows: Sequence[Row]) -> R:
    """Build a ranking from rows that are in order and have every id once."""
    rows = [NOTHING, *rows]
    indptr = np.cumsum([len(row.ids) for row in rows])
    ids = np.concatenate([row.ids for row in rows]).astype(np.int64, copy=False)
    return kind(indptr.astype(np.int64), ids, np.concatenate([row.scores for row in rows]))


def best(ids: Array, scores: Array, top_k: int | None = None) -> Row:
    """Return the row of ids, each given once, by (score descending, id); the ``top_k`` first of it if given."""
    ids, scores = np.asarray(ids, np.int64), np.asarray(scores, np.float64)
    if top_k is not None and len(ids) > top_k > 0:
        cut = np.partition(scores, len(scores) - top_k)[len(scores) - top_k]
        keep = np.flatnonzero(scores >= cut)  # equals at the cut are told apart by id, below
        ids, scores = ids[keep], scores[keep]
    by_rank = order(ids, scores)[:top_k]
    return Row(ids[by_rank], scores[by_rank])


def by_place(ids: Array, keys: Sequence[Array], top_k: int | None = None) -> Row:
    """Return the row of ids, each given once, ordered by the keys, the first deciding first and the smaller standing first.

    Args:
        ids: the elements, in any order.
        keys: one array a key.
        top_k: elements to keep.
    """
    by_rank = np.lexsort((ids, *reversed(keys)))
    new = np.ones(len(ids), dtype=bool)
    for number, key in enumerate(keys):
        differs = key[by_rank[1:]] != key[by_rank[:-1]]
        new[1:] = differs if number == 0 else new[1:] | differs
    places = np.arange(1, len(ids) + 1)
    first = np.maximum.accumulate(np.where(new, places, 0))
    return Row(np.asarray(ids, np.int64)[by_rank][:top_k], (1.0 / first)[:top_k])


class Firsts:
    """Finds for each of some ids where it stood first. Keeps an array of ``n``, so that a row costs what is in it."""

    def __init__(self, n: int) -> None:
        self._at = np.empty(n, dtype=np.int64)

    def __call__(self, ids: Array) -> Array:
        """Return for each entry the position of the first entry with its id."""
        places = np.arange(len(ids))
        self._at[ids[::-1]] = places[::-1]  # of equal indices the last one written stays: the first of the row
        return self._at[ids]


def merge(ids: Array, firsts: Firsts, scores: Array, rule: str = "first") -> tuple[Array, Array]:
    """Return every id once, in order of appearance, with its first score or (``rule="sum"``) the sum of its scores."""
    first = firsts(ids)
    kept = np.flatnonzero(first == np.arange(len(ids)))
    if rule == "sum":
        return ids[kept], np.bincount(first, weights=scores, minlength=len(ids))[kept]
    return ids[kept], scores[kept]


def whole(ranking: Ranking) -> Scores | None:
    """Return the dense matrix a ranking was made of, or None where it was made of rows."""
    try:
        return ranking.dense_or_fail()
    except ValueError:
        return None
