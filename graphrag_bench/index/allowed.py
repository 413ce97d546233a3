"""Vector search that returns only some of what is indexed, whatever the index."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.index.vectors import VectorIndex

Hits = list[tuple[NDArray[np.int64], NDArray[np.float64]]]


def search_allowed(vectors: VectorIndex, texts: Sequence[str], top_k: int, allowed: NDArray[np.bool_]) -> Hits:
    """Return for each text the ids and cosines of its ``top_k`` nearest vectors among the allowed ones, best first.

    The index is asked for more until every text has its ``top_k``, so an exact index gives an exact answer.

    Args:
        vectors: the index.
        texts: what is looked up.
        top_k: hits a text.
        allowed: (vectors,) which may be hit.
    """
    if allowed.all():
        return vectors.search(texts, top_k)
    queries = vectors.embedder.embed(texts, "query")
    wanted = min(top_k, int(allowed.sum()))
    out: Hits = [(np.empty(0, np.int64), np.empty(0)) for _ in texts]
    short = np.arange(len(texts) if wanted > 0 else 0)
    depth = top_k
    while len(short):
        for at, (ids, scores) in zip(short, vectors.nearest(queries[short], depth), strict=True):
            out[at] = ids[allowed[ids]][:top_k], scores[allowed[ids]][:top_k]
        if depth >= len(vectors):
            break
        short = np.array([at for at in short if len(out[at][0]) < wanted], np.int64)
        depth = min(4 * depth, len(vectors))
    return out
