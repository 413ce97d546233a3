"""An embedder whose corpus-sized results are artifacts: a text list embedded once is opened memory-mapped ever after."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder, Role
from graphrag_bench.progress import Progress
from graphrag_bench.store.artifacts import Artifact, Spec, Store, digest

_BLOCK = 512  # texts between two reports of progress


def _reserve(path: Path) -> None:
    """Take a file's blocks now: a mapped page the disk has no room for would kill the process, not raise OSError."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


class StoredEmbedder:
    """Embeds passages through the store, and everything else (questions, mentions) directly.

    ``embed`` builds an artifact and so must not be called on an event loop's thread for passages; the stages call it from
    a worker thread.
    """

    def __init__(self, embedder: Embedder, store: Store, progress: Progress, what: str = "vectors") -> None:
        self._embedder = embedder
        self._store = store
        self._progress = progress
        self._what = what
        self.identity: Mapping[str, Any] = embedder.identity
        self.dim = embedder.dim
        self.artifacts: dict[str, Artifact] = {}

    def spec(self, texts: Sequence[str]) -> Spec:
        """Return the artifact these texts' vectors are."""
        return Spec("vectors", "embed", 1, {}, {"embedder": digest(dict(self.identity)), "texts": digest(list(texts))})

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return the (n, dim) unit vectors; for passages a read-only memory map."""
        if role != "passage" or not texts:
            return self._embedder.embed(texts, role)
        artifact = asyncio.run(self._store.get(self.spec(texts), lambda folder: self._build(folder, texts)))
        self.artifacts[artifact.key] = artifact
        matrix: NDArray[np.float32] = np.load(artifact.path / "vectors.npy", mmap_mode="r", allow_pickle=False)
        return matrix

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the embedder's window."""
        return self._embedder.long_texts(texts)

    async def _build(self, folder: Path, texts: Sequence[str]) -> dict[str, Any]:
        self._progress.stage(self._what, len(texts))
        matrix = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (len(texts), self.dim))
        _reserve(folder / "vectors.npy")
        by_length = sorted(
            range(len(texts)), key=lambda row: len(texts[row])
        )  # alike lengths together: padding is what costs
        for start in range(0, len(texts), _BLOCK):
            rows = by_length[start : start + _BLOCK]
            matrix[rows] = self._embedder.embed([texts[row] for row in rows], "passage")
            self._progress.advance(self._what, len(rows))
        matrix.flush()
        del matrix
        self._progress.finish(self._what)
        return {"texts": len(texts), "dim": self.dim}
