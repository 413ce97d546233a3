"""Vector search by hnswlib: a hierarchical navigable small-world graph (Malkov and Yashunin 2018)."""

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.index.engine import DistinctRows, at_least, missing_library
from graphrag_bench.registry import register
from graphrag_bench.store.arrays import load_arrays, save_arrays

_FILE = "index.hnsw"
_SHAPE = "shape.npz"


@register("index", "hnswlib")
class Hnswlib:
    """Find candidates with hnswlib, by inner product."""

    approximate = True

    def __init__(self, *, m: int = 32, ef_construction: int = 200, ef_search: int = 128, seed: int = 0) -> None:
        """Choose the graph's settings.

        Args:
            m: links a vector; twice as many in the lowest layer.
            ef_construction: candidates kept while a vector is put in.
            ef_search: candidates kept while searching, never below what is asked for.
            seed: seeds the layers.
        """
        at_least(
            "hnswlib",
            {"m": (m, 2), "ef_construction": (ef_construction, 1), "ef_search": (ef_search, 1), "seed": (seed, 0)},
        )
        self.m = m
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.seed = seed

    def build(self, matrix: NDArray[np.float32], folder: Path) -> dict[str, Any]:
        """Index the distinct vectors, in one thread so that the same vectors give the same index."""
        library = _library()
        groups = DistinctRows.of(matrix)
        groups.save(folder)
        save_arrays(folder / _SHAPE, {"width": np.array([matrix.shape[1]], np.int64)})
        if len(groups):
            rows = np.ascontiguousarray(matrix[groups.representatives])
            index = library.Index(space="ip", dim=rows.shape[1])
            # its generator takes 0 for 1, and seeds should differ
            index.init_index(len(rows), M=self.m, ef_construction=self.ef_construction, random_seed=self.seed + 1)
            index.add_items(rows, np.arange(len(rows)), num_threads=1)
            index.save_index(str(folder / _FILE))
        return {"vectors": len(matrix), "distinct": len(groups)}

    def open(self, folder: Path) -> "HnswlibEngine":
        """Open a built index."""
        library = _library()
        groups = DistinctRows.open(folder)
        if not len(groups):
            return HnswlibEngine(None, groups, self.ef_search)
        index = library.Index(space="ip", dim=int(load_arrays(folder / _SHAPE)["width"][0]))
        index.load_index(str(folder / _FILE), max_elements=len(groups))
        return HnswlibEngine(index, groups, self.ef_search)


class HnswlibEngine:
    """An opened hnswlib index."""

    def __init__(self, index: Any, groups: DistinctRows, ef_search: int) -> None:
        self._index = index
        self._groups = groups
        self._ef_search = ef_search
        self._lock = Lock()  # the beam is a field of the index, so a query sets it and searches in one go

    def candidates(self, vectors: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return the ids of up to ``k`` near vectors a query, nearest first: (queries, k), padded with -1."""
        if self._index is None or not len(vectors) or k < 1:
            return np.full((len(vectors), max(k, 0)), -1, np.int64)
        wanted = min(k, len(self._groups))
        found = np.full((len(vectors), wanted), -1, np.int64)
        with self._lock:
            self._index.set_ef(max(self._ef_search, wanted))
            for number, vector in enumerate(np.ascontiguousarray(vectors, np.float32)):
                row = self._one(vector, wanted)
                found[number, : len(row)] = row
        return self._groups.expand(found, k)

    def _one(self, vector: NDArray[np.float32], wanted: int) -> NDArray[np.int64]:
        """Return what the walk reaches; hnswlib raises where that is fewer than asked, so then fewer are asked for."""
        while wanted:
            try:
                labels, _ = self._index.knn_query(vector, k=wanted, num_threads=1)
            except RuntimeError:
                wanted //= 2
            else:
                return np.asarray(labels[0], np.int64)
        return np.empty(0, np.int64)


def _library() -> Any:
    try:
        import hnswlib
    except ImportError:
        raise missing_library("hnswlib", "hnswlib") from None
    return hnswlib
