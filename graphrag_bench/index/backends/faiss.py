"""Vector search by faiss: flat, HNSW graphs, or inverted lists (Douze et al. 2024, "The Faiss library")."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.index.engine import DistinctRows, at_least, missing_library
from graphrag_bench.registry import register

_FILE = "index.faiss"
_TRAINED_ON = 39  # vectors a list that faiss asks for before it warns


@register("index", "faiss")
class Faiss:
    """Find candidates with faiss, by inner product."""

    approximate = True

    def __init__(
        self,
        *,
        kind: Literal["flat", "hnsw", "ivf"] = "hnsw",
        m: int = 32,
        ef_construction: int = 200,
        ef_search: int = 128,
        nlist: int | None = None,
        nprobe: int = 16,
        seed: int = 0,
    ) -> None:
        """Choose a kind and its settings.

        Args:
            kind: ``flat`` scores all; ``hnsw`` walks a proximity graph; ``ivf`` scores the nearest of k-means' lists.
            m: hnsw: links a vector and layer.
            ef_construction: hnsw: candidates kept while a vector is put in.
            ef_search: hnsw: candidates kept while searching, never below what is asked for.
            nlist: ivf: lists; null for the square root of the number of vectors, at most what k-means can be trained for.
            nprobe: ivf: lists looked through a query.
            seed: seeds the graph's layers and k-means.
        """
        at_least(
            "faiss",
            {
                "m": (m, 2), "ef_construction": (ef_construction, 1), "ef_search": (ef_search, 1), "nlist": (nlist, 1),
                "nprobe": (nprobe, 1), "seed": (seed, 0),
            },
        )  # fmt: skip
        self.kind = kind
        self.m = m
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.nlist = nlist
        self.nprobe = nprobe
        self.seed = seed

    def build(self, matrix: NDArray[np.float32], folder: Path) -> dict[str, Any]:
        """Index the distinct vectors, in one thread so that the same vectors give the same index."""
        faiss = _library()
        groups = DistinctRows.of(matrix)
        groups.save(folder)
        facts: dict[str, Any] = {"vectors": len(matrix), "distinct": len(groups)}
        if len(groups):
            with _one_thread(faiss):
                index, more = self._index(faiss, np.ascontiguousarray(matrix[groups.representatives]))
            faiss.write_index(index, str(folder / _FILE))
            facts |= more
        return facts

    def _index(self, faiss: Any, rows: NDArray[np.float32]) -> tuple[Any, dict[str, Any]]:
        count, width = rows.shape
        product = faiss.METRIC_INNER_PRODUCT
        if self.kind == "ivf":
            lists = min(self.nlist or max(1, min(round(count**0.5), count // _TRAINED_ON)), count)
            index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, product)
            index.cp.seed = self.seed
            index.cp.min_points_per_centroid = (
                1  # the default above never warns; a list more than that is the user's wish
            )
            index.train(rows)
            index.add(rows)
            return index, {"lists": lists}
        if self.kind == "flat":
            index = faiss.IndexFlatIP(width)
        else:
            index = faiss.IndexHNSWFlat(width, self.m, product)
            index.hnsw.rng = faiss.RandomGenerator(self.seed)
            index.hnsw.efConstruction = self.ef_construction
        index.add(rows)
        return index, {}

    def open(self, folder: Path) -> "FaissEngine":
        """Open a built index."""
        faiss = _library()
        groups = DistinctRows.open(folder)
        if not len(groups):
            return FaissEngine(None, groups, None)
        index = faiss.read_index(str(folder / _FILE))
        return FaissEngine(index, groups, self)


class FaissEngine:
    """An opened faiss index."""

    def __init__(self, index: Any, groups: DistinctRows, settings: Faiss | None) -> None:
        self._index = index
        self._groups = groups
        self._settings = settings

    def candidates(self, vectors: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return the ids of up to ``k`` near vectors a query, nearest first: (queries, k), padded with -1."""
        if self._settings is None or not len(vectors) or k < 1:
            return np.full((len(vectors), max(k, 0)), -1, np.int64)
        faiss = _library()
        wanted = min(k, len(self._groups))
        parameters = None  # given a call, not set on the index: two threads may ask at once
        if self._settings.kind == "hnsw":
            parameters = faiss.SearchParametersHNSW(efSearch=max(self._settings.ef_search, wanted))
        elif self._settings.kind == "ivf":
            parameters = faiss.SearchParametersIVF(nprobe=min(self._settings.nprobe, self._index.nlist))
        _, found = self._index.search(np.ascontiguousarray(vectors, np.float32), wanted, params=parameters)
        return self._groups.expand(found.astype(np.int64), k)


def _library() -> Any:
    try:
        import faiss
    except ImportError:
        raise missing_library("faiss", "faiss-cpu") from None
    return faiss


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
