"""Fuse: two rankings of chunks made into one."""

from typing import Literal

import numpy as np

from graphrag_bench.pipeline.rows import NOTHING, best, stack
from graphrag_bench.pipeline.values import Chunks, Row, Scores
from graphrag_bench.registry import operator


@operator("chunk.fuse", symmetric=("first", "second"))
def fuse(
    first: Chunks,
    second: Chunks,
    *,
    rule: Literal["rrf", "sum_normalised"] = "rrf",
    k: int = 60,
    top_k: int | None = None,
) -> Chunks:
    """Rank chunks by both rankings; what only one of them holds counts by that one.

    By ``rrf``, reciprocal rank fusion (Cormack et al., SIGIR 2009), a chunk scores the sum of 1 / (k + its place); chunks of
    one score share the place of the first of them. By ``sum_normalised`` it scores the sum of its scores, each ranking's
    divided by the question's largest absolute one.

    Args:
        first: one ranking.
        second: the other.
        rule: how the two are brought together.
        k: how little the first places stand out (60 in the paper).
        top_k: chunks to keep.
    """
    weigh = (lambda row: 1.0 / (k + _places(row.scores))) if rule == "rrf" else _normalised
    return stack(
        Chunks, [_united(one, two, weigh(one), weigh(two), top_k) for one, two in zip(first, second, strict=True)]
    )


def _united(one: Row, two: Row, ones: Scores, twos: Scores, top_k: int | None) -> Row:
    ids, at = np.unique(np.concatenate([one.ids, two.ids]), return_inverse=True)
    return best(ids, np.bincount(at, np.concatenate([ones, twos]), len(ids)), top_k) if len(ids) else NOTHING


def _places(scores: Scores) -> Scores:
    """Return 1 for the best and so on; equals share a place."""
    places = np.arange(1.0, len(scores) + 1)
    new = np.diff(scores, prepend=np.inf) != 0
    return np.maximum.accumulate(np.where(new, places, 0.0))


def _normalised(row: Row) -> Scores:
    largest = np.abs(row.scores).max(initial=0.0)
    return row.scores / largest if largest else row.scores
