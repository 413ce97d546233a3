"""Which names are one: phrases alike up to case and punctuation, and pairs of names whose embeddings are near."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder

_APART = re.compile(r"[\W_]+")
_TILE = 2048
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


@lru_cache(maxsize=1 << 18)
def phrase_key(name: str) -> str:
    """Return what makes two phrases the same node: case-folded, everything but letters, their marks and digits as one space."""
    if name.isascii():
        return _APART.sub(" ", name.casefold()).strip()
    folded = unicodedata.normalize("NFC", name.casefold())
    kept = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in folded)
    return " ".join(word for word in kept.split() if any(map(str.isalnum, word)))


def synonyms(names: Sequence[str], embedder: Embedder, threshold: float | None, top_k: int) -> Pairs:
    """Return the pairs (smaller id first) whose cosine reaches the threshold, each among the nearest of one of its ends.

    Names of one or two letters or digits have no synonyms (HippoRAG's rule).

    Args:
        names: the names; a name's id is its position.
        embedder: embeds all of them, as passages.
        threshold: cosine from which two names are synonyms; None for no synonyms.
        top_k: synonyms a name at most, its nearest.

    Returns:
        The two ends of each pair, sorted, and the cosines, rounded to six places.
    """
    eligible = np.array(
        [number for number, name in enumerate(names) if sum(map(str.isalnum, phrase_key(name))) > 2], np.int64
    )
    if threshold is None or len(eligible) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    # all names are embedded, not the eligible ones alone: it is the very matrix the node index wants
    matrix = np.asarray(embedder.embed(names, "passage"))[eligible]
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for start in range(0, len(matrix), _TILE):  # tiles of the upper triangle only: cosine is symmetric
        for other in range(start, len(matrix), _TILE):
            scores = matrix[start : start + _TILE] @ matrix[other : other + _TILE].T
            a, b = np.nonzero(scores >= threshold)
            value = np.asarray(scores[a, b], dtype=np.float64).round(6)
            a, b = a + start, b + other
            keep = a < b
            found.append((a[keep].astype(np.int64), b[keep].astype(np.int64), value[keep]))
    a, b, value = (np.concatenate(part) for part in zip(*found, strict=True))
    keep = _near_enough(a, b, value, top_k)
    by_ids = np.lexsort((b[keep], a[keep]))
    return eligible[a[keep]][by_ids], eligible[b[keep]][by_ids], value[keep][by_ids]


def _near_enough(
    a: NDArray[np.int64], b: NDArray[np.int64], value: NDArray[np.float64], top_k: int
) -> NDArray[np.bool_]:
    """Mark the pairs that are among the top_k of either end."""
    ends = np.concatenate([a, b])
    others = np.concatenate([b, a])
    values = np.concatenate([value, value])
    by_end = np.lexsort((others, -values, ends))
    first = np.searchsorted(ends[by_end], np.arange(ends.max() + 2 if len(ends) else 1))
    rank = np.arange(len(ends)) - first[ends[by_end]]
    near = np.empty(len(ends), dtype=bool)
    near[by_end] = rank < top_k
    kept: NDArray[np.bool_] = near[: len(a)] | near[len(a) :]
    return kept
