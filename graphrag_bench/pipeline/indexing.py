"""The indexes of a cell, each an artifact that is made when a step needs it: vectors, search engines, BM25, TF-IDF."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.table import open_chunks
from graphrag_bench.config.schema import filled
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.engine import Backend, Engine
from graphrag_bench.index.hierarchy import HierarchyIndex, build_layers, community_layers, open_layers
from graphrag_bench.index.lexical import LANGUAGE, LexicalIndex
from graphrag_bench.index.texts import community_texts, node_texts, relationship_texts
from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.pipeline.loans import INDEXES
from graphrag_bench.pipeline.stages import Stages
from graphrag_bench.registry import REGISTRY
from graphrag_bench.store.artifacts import Spec, digest

Matrix = NDArray[np.float32]


class Indexes:
    """Builds or opens the indexes that a cell's steps borrow."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._settings = stages.config["index"]
        self._makers: dict[object, Callable[[], Awaitable[Any]]] = {
            NodeVectors: self._nodes,
            RelationshipVectors: self._relationships,
            ChunkVectors: self._chunks,
            CommunityVectors: self._communities,
            HierarchyIndex: self._hierarchy,
            LexicalIndex: self._lexical,
            TfidfIndex: self._tfidf,
        }

    async def lend(self, wanted: Iterable[object]) -> dict[object, Any]:
        """Return the indexes among what is wanted, by type."""
        kinds = set(wanted)
        return {kind: await make() for kind, make in self._makers.items() if kind in kinds}

    def chunk_spec(self) -> Spec:
        """Return the spec of the chunks' vectors; the chunks must be in the store."""
        found = self._stages.store.find(self._stages.chunk_spec())
        texts = [chunk.text for chunk in open_chunks(found.path)] if found else []
        return self._stages.stored_embedder("chunk vectors").spec(texts)

    def lexical_spec(self) -> Spec:
        """Return the lexical index's spec."""
        settings = {"k1": self._settings["k1"], "b": self._settings["b"], "language": LANGUAGE}
        return Spec("lexical", "bm25", 1, settings, {"chunks": self._stages.chunk_spec().key})

    def tfidf_spec(self, texts: Sequence[str]) -> Spec:
        """Return the spec of the TF-IDF index of some texts."""
        return Spec("tfidf", "tfidf", 1, {}, {"texts": digest(list(texts))})

    def engine_spec(self, texts: str, stage: str = "engine") -> Spec:
        """Return the spec of the engine over the vectors of texts with a digest."""
        component = REGISTRY.get("index", self._settings["backend"])
        inputs = {"texts": texts, "embedder": digest(dict(self._embedder().identity))}
        return Spec(stage, component.name, component.version, filled(self._settings, component.settings), inputs)

    async def _nodes(self) -> NodeVectors:
        graph = await self._stages.graph()
        texts = node_texts(graph, self._settings["node_text"])
        name = INDEXES[NodeVectors]
        leaves = await self._leaves(graph, texts)
        if leaves is None:
            return NodeVectors(*await self._searched(name, texts))
        # a tree's leaves are the chunks: their vectors are those of the chunks, and only the summaries' are new
        summaries, _ = await self._vectors(name, texts[len(leaves) :])
        matrix = np.concatenate([leaves, summaries]) if len(summaries) else leaves
        return NodeVectors(matrix, self._embedder(), await self._engine(name, matrix, digest(texts)))

    async def _leaves(self, graph: Graph, texts: Sequence[str]) -> Matrix | None:
        if "node.text" not in graph.attributes:
            return None
        chunks = [chunk.text for chunk in await self._stages.chunks()]
        return (await self._vectors(INDEXES[ChunkVectors], chunks))[0] if list(texts[: len(chunks)]) == chunks else None

    async def _relationships(self) -> RelationshipVectors:
        graph = await self._stages.graph()
        texts = relationship_texts(graph, self._settings["relationship_text"])
        return RelationshipVectors(*await self._searched(INDEXES[RelationshipVectors], texts))

    async def _communities(self) -> CommunityVectors:
        name = INDEXES[CommunityVectors]
        texts = community_texts(await self._stages.graph(), self._settings["community_text"])
        matrix = await self._reported(texts)
        return CommunityVectors(matrix, self._embedder(), await self._engine(name, matrix, digest(texts)))

    async def _reported(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of communities' texts, zeros where a community has none; nobody takes such a community."""
        there = np.array([bool(text.strip()) for text in texts], dtype=bool)
        found, _ = await self._vectors(INDEXES[CommunityVectors], [text for text in texts if text.strip()])
        if there.all():
            return found
        matrix = np.zeros((len(texts), self._embedder().dim), np.float32)
        matrix[there] = found
        return matrix

    async def _hierarchy(self) -> HierarchyIndex:
        """Return the index over all layers; it needs the vectors, and no engine over either of them alone."""
        graph = await self._stages.graph()
        nodes, communities = self.hierarchy_texts(graph)
        matrix, _ = await self._vectors(INDEXES[NodeVectors], nodes)
        reports = await self._reported(communities)
        embedder = self._embedder()
        index = HierarchyIndex(NodeVectors(matrix, embedder), CommunityVectors(reports, embedder), community_layers(graph))
        backend = self._backend()
        if not backend.approximate:
            return index
        spec, name = self.hierarchy_spec(graph), INDEXES[HierarchyIndex]

        async def build(folder: Path) -> dict[str, Any]:
            self._stages.progress.stage(name, len(matrix) + sum(map(len, index.layers)))
            return await asyncio.to_thread(build_layers, backend, index.matrices, folder)

        index.engine = open_layers(backend, (await self._stages.get(name, spec, build)).path)
        return index

    def hierarchy_texts(self, graph: Graph) -> tuple[list[str], list[str]]:
        """Return what is embedded of a hierarchy: the nodes' texts and the communities'."""
        return node_texts(graph, self._settings["node_text"]), community_texts(graph, self._settings["community_text"])

    def hierarchy_spec(self, graph: Graph) -> Spec:
        """Return the spec of the engine over a hierarchy."""
        layers = [layer.tolist() for layer in community_layers(graph)]
        return self.engine_spec(digest([*self.hierarchy_texts(graph), layers]), "hierarchy engine")

    def _backend(self) -> Backend:
        component = REGISTRY.get("index", self._settings["backend"])
        made: Backend = component.call(**filled(self._settings, component.settings))
        return made

    async def _chunks(self) -> ChunkVectors:
        texts = [chunk.text for chunk in await self._stages.chunks()]
        return ChunkVectors(*await self._searched(INDEXES[ChunkVectors], texts))

    async def _searched(self, name: str, texts: Sequence[str]) -> tuple[Matrix, Any, Engine | None]:
        matrix, key = await self._vectors(name, texts)
        return matrix, self._embedder(), await self._engine(name, matrix, key)

    async def _vectors(self, name: str, texts: Sequence[str]) -> tuple[Matrix, str]:
        embedder = self._stages.stored_embedder(name)
        matrix = await asyncio.to_thread(embedder.embed, texts, "passage")
        noted = self._stages.artifacts
        for key, artifact in embedder.artifacts.items():
            # what the graph embedded while it was built is noted under the nodes, and need not be their index
            if name not in noted or noted[name].key != key:
                noted[name] = artifact
        return matrix, digest(list(texts))

    async def _engine(self, name: str, matrix: Matrix, texts: str) -> Engine | None:
        backend = self._backend()
        if not backend.approximate:
            return None
        spec = self.engine_spec(texts)
        stage = f"{name}' search"

        async def build(folder: Path) -> dict[str, Any]:
            self._stages.progress.stage(stage, len(matrix))
            return dict(await asyncio.to_thread(backend.build, matrix, folder))

        return backend.open((await self._stages.get(stage, spec, build)).path)

    def _embedder(self) -> Any:
        return self._stages.embedder()

    async def _lexical(self) -> LexicalIndex:
        chunks = await self._stages.chunks()
        name = INDEXES[LexicalIndex]

        async def build(folder: Path) -> dict[str, Any]:
            self._stages.progress.stage(name, len(chunks))
            texts = [chunk.text for chunk in chunks]
            await asyncio.to_thread(LexicalIndex.build, texts, folder, k1=self._settings["k1"], b=self._settings["b"])
            return {"chunks": len(chunks)}

        return LexicalIndex.open((await self._stages.get(name, self.lexical_spec(), build)).path, len(chunks))

    async def _tfidf(self) -> TfidfIndex:
        texts = node_texts(await self._stages.graph(), self._settings["node_text"])
        name = INDEXES[TfidfIndex]

        async def build(folder: Path) -> dict[str, Any]:
            self._stages.progress.stage(name, len(texts))
            await asyncio.to_thread(TfidfIndex.build, texts, folder)
            return {"texts": len(texts)}

        return TfidfIndex.open((await self._stages.get(name, self.tfidf_spec(texts), build)).path)
