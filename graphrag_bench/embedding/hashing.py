"""Character n-grams hashed into a vector: no model, no dependency, the embedder of the tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.vectors import check_texts, no_rows, unit_rows
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


@register("embedder", "hashing")
class HashingEmbedder:
    """Embed by signed hashing of character n-grams: texts that share spelling are similar, meaning plays no part.

    Deterministic on every platform, since the counts are whole numbers. Case is folded; there is no window.

    Args:
        dim: Length of the vectors.
        ngram: Characters an n-gram has; the text counts as if it stood between two spaces.
    """

    def __init__(self, *, dim: int = 256, ngram: int = 4) -> None:
        if dim < 1 or ngram < 1:
            raise UserError(f"hashing cannot work with dim {dim} and ngram {ngram}.", "Set both to at least 1.")
        self.dim = dim
        self._ngram = ngram
        self.identity: Mapping[str, Any] = {"backend": "hashing", "version": 1, "dim": dim, "ngram": ngram}

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return (n, dim) unit vectors; there are no roles.

        Raises:
            UserError: A text is empty.
        """
        check_texts(texts)
        if not texts:
            return no_rows(self.dim)
        return unit_rows(np.stack([self._count(text) for text in texts]), texts)

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return 0: there is no window."""
        return 0

    def _count(self, text: str) -> NDArray[np.float64]:
        spaced = f" {' '.join(text.casefold().split())} ".rjust(self._ngram)
        codes = np.frombuffer(spaced.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        n = len(codes) - self._ngram + 1
        hashes = np.zeros(n, dtype=np.uint64)
        for offset in range(self._ngram):
            hashes = (hashes ^ codes[offset : offset + n]) * np.uint64(_MULTIPLIERS[0])
            hashes ^= hashes >> np.uint64(29)
        for shift, multiplier in ((30, _MULTIPLIERS[1]), (27, _MULTIPLIERS[2])):
            hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(multiplier)
        buckets = ((hashes >> np.uint64(8)) % np.uint64(self.dim)).astype(np.intp)
        signs = np.where(hashes >> np.uint64(63), 1.0, -1.0)
        counts: NDArray[np.float64] = np.bincount(buckets, weights=signs, minlength=self.dim).astype(np.float64)
        if not counts.any():  # every n-gram was cancelled by another of opposite sign
            counts[buckets[0]] = 1.0
        return counts
