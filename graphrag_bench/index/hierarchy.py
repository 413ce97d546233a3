"""The index over a whole hierarchy (ArchRAG): entities and the communities of every layer, searched together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.reported import reported
from graphrag_bench.index.engine import Backend, Engine, LayeredBackend, LayeredEngine
from graphrag_bench.index.vectors import CommunityVectors, NodeVectors, VectorIndex
from graphrag_bench.store.arrays import load_arrays, save_arrays

Matrix = NDArray[np.float32]
Hits = list[tuple[NDArray[np.int64], NDArray[np.float64]]]  # a pair of ids and cosines a text, best first
_SPARE = 10  # candidates asked of an engine beyond twice what is wanted, as in a flat index
_SHAPE = "layers.npz"


def community_layers(graph: Graph) -> list[NDArray[np.int64]]:
    """Return the communities of each layer that have a report, by rising id; the finest layer first.

    Layers count up from the entities, levels down from the root: the finest level is the first layer of communities. A
    layer none of whose communities has a report is not there.
    """
    there, level = reported(graph), graph.communities.level
    layers = [np.flatnonzero(there & (level == at)) for at in range(int(level.max(initial=-1)), -1, -1)]
    return [layer for layer in layers if len(layer)]


class HierarchyIndex:
    """Vectors of entities and communities by layer.

    Attributes:
        nodes: the entities' vectors, layer 0.
        communities: the communities' vectors.
        layers: the communities of each further layer, the finest first.

    Args:
        nodes: see above.
        communities: see above.
        layers: see above.
        engine: finds candidates in all layers at once; without one every vector is scored.
    """

    def __init__(
        self,
        nodes: NodeVectors,
        communities: CommunityVectors,
        layers: Sequence[NDArray[np.int64]],
        engine: LayeredEngine | None = None,
    ) -> None:
        self.nodes = nodes
        self.communities = communities
        self.layers = list(layers)
        self.engine = engine

    @property
    def matrices(self) -> list[Matrix]:
        """The vectors of each layer, the entities' first."""
        return [self.nodes.matrix, *(self.communities.matrix[layer] for layer in self.layers)]

    def search(self, texts: Sequence[str], top_k: int) -> list[Hits]:
        """Return for each layer (entities first) and text the ids and cosines of the ``top_k`` nearest, best first.

        Ids are nodes in layer 0 and communities above it. An engine's candidates are scored as exact search scores.
        """
        return self.nearest(self.nodes.embedder.embed(texts, "query"), top_k)

    def nearest(self, vectors: Matrix, top_k: int) -> list[Hits]:
        """Do the same for query vectors."""
        wanted = 2 * top_k + _SPARE
        found: list[NDArray[np.int64]] | None = None
        if self.engine is not None and top_k > 0 and len(vectors) and len(self.nodes):
            found = self.engine.candidates(vectors, wanted)
        out: list[Hits] = []
        for layer in range(1 + len(self.layers)):
            searched: VectorIndex = self.communities if layer else self.nodes
            ids = self.layers[layer - 1] if layer else None
            if found is None or wanted >= (len(self.nodes) if ids is None else len(ids)):
                out.append(_all(searched, ids, vectors, top_k))
                continue
            rows = [row[row >= 0] for row in found[layer]]
            chosen = rows if ids is None else [ids[row] for row in rows]
            out.append([searched.best(vector, row, top_k) for vector, row in zip(vectors, chosen, strict=True)])
        return out


def _all(searched: VectorIndex, ids: NDArray[np.int64] | None, vectors: Matrix, top_k: int) -> Hits:
    """Score every vector of a layer."""
    if ids is None:
        return VectorIndex(searched.matrix, searched.embedder).nearest(vectors, top_k)
    found = VectorIndex(searched.matrix[ids], searched.embedder).nearest(vectors, top_k)
    return [(ids[rows], cosines) for rows, cosines in found]


class _Apart:
    """One engine a layer, for a backend that has none for hierarchies."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines

    def candidates(self, vectors: Matrix, k: int) -> list[NDArray[np.int64]]:
        return [engine.candidates(vectors, k) for engine in self._engines]


def build_layers(backend: Backend, layers: Sequence[Matrix], folder: Path) -> dict[str, Any]:
    """Write the engine of a hierarchy into an existing folder: the backend's own, or one of its engines a layer."""
    save_arrays(folder / _SHAPE, {"sizes": np.array([len(layer) for layer in layers], np.int64)})
    if isinstance(backend, LayeredBackend):
        return dict(backend.build_layers(layers, folder))
    facts: list[Mapping[str, Any]] = []
    for number, layer in enumerate(layers):
        (within := folder / f"layer{number}").mkdir()
        facts.append(backend.build(layer, within))
    return {"layers": facts}


def open_layers(backend: Backend, folder: Path) -> LayeredEngine | None:
    """Open what `build_layers` wrote; None for a backend without engines."""
    if not backend.approximate:
        return None
    if isinstance(backend, LayeredBackend):
        return backend.open_layers(folder)
    count = len(load_arrays(folder / _SHAPE)["sizes"])
    engines = [backend.open(folder / f"layer{number}") for number in range(count)]
    return _Apart([engine for engine in engines if engine is not None])
