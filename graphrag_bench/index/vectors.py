"""Vector search: every vector scored by one matrix product, or the candidates of an engine; ties by rising id."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.index.engine import Engine

_DECIMALS = (
    6  # single-precision products of unit vectors agree to about 1e-7 whatever the batch; ranks must not hang on more
)
_BLOCK = 64 * 1024 * 1024 // 4  # scores held at a time
_SPARE = (
    10  # candidates asked of an engine beyond twice what is wanted: its own order is single precision, and approximate
)


class VectorIndex:
    """Unit vectors with the embedder that made them, so a text is always compared with its own kind.

    Args:
        matrix: (vectors, width) unit vectors.
        embedder: what made them.
        engine: finds candidates among them; without one every vector is scored.
    """

    def __init__(self, matrix: NDArray[np.float32], embedder: Embedder, engine: Engine | None = None) -> None:
        self.matrix = matrix
        self.embedder = embedder
        self.engine = engine

    def __len__(self) -> int:
        return len(self.matrix)

    def search(self, texts: Sequence[str], top_k: int) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Return for each text the ids and cosines of its ``top_k`` nearest vectors, best first."""
        return self.nearest(self.embedder.embed(texts, "query"), top_k)

    def nearest(self, vectors: NDArray[np.float32], top_k: int) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Return for each query vector the ids and cosines of its ``top_k`` nearest vectors, best first.

        An engine's candidates are scored as exact search scores; only which vectors are looked at is its choice. Where it
        would be asked for all of them, all are scored.
        """
        if not len(self.matrix):
            return [(np.empty(0, np.int64), np.empty(0)) for _ in range(len(vectors))]
        wanted = 2 * top_k + _SPARE
        if self.engine is not None and top_k > 0 and wanted < len(self.matrix):
            rows = self.engine.candidates(vectors, wanted)
            return [self.best(vector, row[row >= 0], top_k) for vector, row in zip(vectors, rows, strict=True)]
        step = max(1, _BLOCK // len(self.matrix))
        out: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        for start in range(0, len(vectors), step):
            block = vectors[start : start + step]
            scores = block @ self.matrix.T
            out.extend(self._top(vector, row, top_k) for vector, row in zip(block, scores, strict=True))
        return out

    def _top(
        self, vector: NDArray[np.float32], scores: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k best, among equals at the cut the smaller ids; the few that can be are scored in double precision."""
        k = min(k, len(scores))
        if k <= 0:
            return np.empty(0, np.int64), np.empty(0)
        cut = (
            np.max(scores) if k == 1 else np.partition(scores, len(scores) - k)[len(scores) - k]
        ) - 2 * 10.0**-_DECIMALS
        return self.best(vector, np.flatnonzero(scores >= cut), k)

    def best(
        self, vector: NDArray[np.float32], ids: NDArray[np.int64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the k best of the vectors with the given ids, and their cosines, scored in double precision."""
        exact = (self.matrix[ids].astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
        values = np.round(exact, _DECIMALS)
        best = np.lexsort((ids, -values))[:k]
        return ids[best], values[best]


class NodeVectors(VectorIndex):
    """Vectors of the graph's nodes."""


class RelationshipVectors(VectorIndex):
    """Vectors of the graph's relationships, of every kind; hits are relationship ids."""


class ChunkVectors(VectorIndex):
    """Vectors of the chunks."""


class CommunityVectors(VectorIndex):
    """Vectors of the communities' reports."""
