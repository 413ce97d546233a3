"""Hits of several texts a question, united into the question's row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Hit = tuple[NDArray[np.int64], NDArray[np.float64]]


def unite(
    texts: Sequence[Sequence[str]], hits: Iterable[Hit], min_similarity: float = -1.0, *, shares: bool = False
) -> list[Hit]:
    """Return one (ids, scores) a question from one hit a text, those below a similarity left out; ids may come twice.

    Args:
        texts: the texts of each question.
        hits: what each text found, one question's after the other's.
        min_similarity: the least cosine that counts.
        shares: score each hit by its share among its text's hits, (1 + cosine) / 2 over their sum, so that every text
            weighs the same however many hits it has (fast-graphrag).
    """
    found = iter(hits)
    rows = []
    for row in texts:
        parts = [_kept(next(found), min_similarity, shares) for _ in row]
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in parts)])
        rows.append((ids, np.concatenate([np.empty(0), *(scores for _, scores in parts)])))
    return rows


def _kept(hit: Hit, min_similarity: float, shares: bool) -> Hit:
    ids, scores = hit[0][hit[1] >= min_similarity], hit[1][hit[1] >= min_similarity]
    if shares and len(ids):
        scores = (1.0 + scores) / 2.0
        scores = scores / max(scores.sum(), np.finfo(float).tiny)
    return ids, scores
