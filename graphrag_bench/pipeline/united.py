"""Hits of several texts a question, united into the question's row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Hit = tuple[NDArray[np.int64], NDArray[np.float64]]


def unite(texts: Sequence[Sequence[str]], hits: Iterable[Hit], min_similarity: float = -1.0) -> list[Hit]:
    """Return one (ids, scores) a question from one hit a text, those below a similarity left out; ids may come twice.

    Args:
        texts: the texts of each question.
        hits: what each text found, one question's after the other's.
        min_similarity: the least cosine that counts.
    """
    found = iter(hits)
    rows = []
    for row in texts:
        parts = [next(found) for _ in row]
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in parts)])
        scores = np.concatenate([np.empty(0), *(scores for _, scores in parts)])
        rows.append((ids[scores >= min_similarity], scores[scores >= min_similarity]))
    return rows
