"""Vector search by C-HNSW (ArchRAG): one navigable graph over all layers of a hierarchy, or over one layer alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.index.engine import DistinctRows, at_least
from graphrag_bench.registry import register

_FILE = "index.chnsw"
Matrix = NDArray[np.float32]


@register("index", "chnsw")
class Chnsw:
    """Find candidates with C-HNSW, by inner product: each layer is entered where the layer above has led."""

    approximate = True

    def __init__(
        self,
        *,
        m: int = 32,
        ef_construction: int = 100,
        ef_search: int = 100,
        dtype: Literal["float32", "float16", "int8"] = "float32",
        seed: int = 0,
    ) -> None:
        """Choose the graph's settings.

        Args:
            m: links a vector; twice as many at most.
            ef_construction: candidates kept while a vector is put in.
            ef_search: candidates kept in a layer while searching, never below what is asked for.
            dtype: what the walk reads; the candidates are scored again exactly.
            seed: of the order in which vectors are put in.
        """
        at_least(
            "chnsw",
            {"m": (m, 2), "ef_construction": (ef_construction, 1), "ef_search": (ef_search, 1), "seed": (seed, 0)},
        )
        self.m = m
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.dtype = dtype
        self.seed = seed

    def build(self, matrix: Matrix, folder: Path) -> dict[str, Any]:
        """Index the distinct vectors as a hierarchy of one layer."""
        return self.build_layers([matrix], folder)

    def open(self, folder: Path) -> "ChnswEngine":
        """Open a built index of one layer."""
        return ChnswEngine(self.open_layers(folder))

    def build_layers(self, layers: Sequence[Matrix], folder: Path) -> dict[str, Any]:
        """Index the distinct vectors of each layer; the same vectors give the same index whatever the threads."""
        import chnsw

        groups = [DistinctRows.of(layer) for layer in layers]
        for number, group in enumerate(groups):
            (within := folder / f"rows{number}").mkdir()
            group.save(within)
        facts = {"vectors": sum(map(len, layers)), "distinct": sum(map(len, groups))}
        if all(len(group) for group in groups):
            rows = [np.ascontiguousarray(layer[group.representatives]) for layer, group in zip(layers, groups, strict=True)]
            index = chnsw.Index(
                rows[0].shape[1], metric="ip", m=self.m, ef_construction=self.ef_construction, seed=self.seed, dtype=self.dtype
            )
            index.build(rows)
            index.save(str(folder / _FILE))
        return facts

    def open_layers(self, folder: Path) -> "ChnswLayers":
        """Open a built index."""
        import chnsw

        count = sum(1 for _ in folder.glob("rows*"))
        groups = [DistinctRows.open(folder / f"rows{number}") for number in range(count)]
        there = (folder / _FILE).exists()
        return ChnswLayers(chnsw.Index.load(str(folder / _FILE)) if there else None, groups, self.ef_search)


class ChnswLayers:
    """An opened C-HNSW index."""

    def __init__(self, index: Any, groups: Sequence[DistinctRows], ef_search: int) -> None:
        self._index = index
        self._groups = groups
        self._ef_search = ef_search

    def candidates(self, vectors: Matrix, k: int) -> list[NDArray[np.int64]]:
        """Return for each layer the ids of up to ``k`` near vectors a query, nearest first, padded with -1."""
        if self._index is None or not len(vectors) or k < 1:
            return [np.full((len(vectors), max(k, 0)), -1, np.int64) for _ in self._groups]
        found = self._index.search(np.ascontiguousarray(vectors, np.float32), k, ef=max(self._ef_search, k))
        return [group.expand(ids, k) for group, (ids, _) in zip(self._groups, found, strict=True)]


class ChnswEngine:
    """An opened C-HNSW index of one layer."""

    def __init__(self, layers: ChnswLayers) -> None:
        self._layers = layers

    def candidates(self, vectors: Matrix, k: int) -> NDArray[np.int64]:
        """Return the ids of up to ``k`` near vectors a query, nearest first: (queries, k), padded with -1."""
        return self._layers.candidates(vectors, k)[0]
