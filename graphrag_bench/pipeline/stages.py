"""The offline stages of a cell, each an artifact: chunks, extraction, graph, vectors, lexical index."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.table import open_chunks, save_chunks
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.config.schema import filled
from graphrag_bench.data.types import Dataset, GivenOpenIE
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.lexical import LANGUAGE, LexicalIndex
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.cache import TRANSIENT
from graphrag_bench.progress import Progress
from graphrag_bench.registry import REGISTRY, Component
from graphrag_bench.store.artifacts import Artifact, Spec, Store, digest
from graphrag_bench.store.embedded import StoredEmbedder

Spend = Callable[[str], dict[str, Any]]  # stage -> ledger totals of it so far


class Stages:
    """Builds or opens what a cell's retrieval stands on, and remembers what each stage cost when it was built."""

    def __init__(
        self,
        config: Mapping[str, Any],
        dataset: Dataset,
        store: Store,
        embedder: Callable[[], Embedder],
        model: Callable[[], ChatModel],
        model_identity: Callable[[], Mapping[str, Any]],
        spend: Spend,
        progress: Progress,
    ) -> None:
        self.config = config
        self.dataset = dataset
        self.store = store
        self._embedder = embedder
        self._model = model
        self._model_identity = model_identity
        self._spend = spend
        self.progress = progress
        self.artifacts: dict[str, Artifact] = {}

    # -- what is wanted: specs need no work, so `plan` and `check` can ask for them --

    def chunk_spec(self) -> Spec:
        """Return the chunks' spec."""
        component, settings = self._chosen("chunking", "chunker")
        documents = digest([[d.id, d.title, d.text] for d in self.dataset.documents])
        return Spec("chunks", component.name, component.version, settings, {"documents": documents})

    def extraction_spec(self) -> Spec:
        """Return the extraction's spec."""
        component = self.extractor()
        settings = filled(self.config["graph"], component.settings)
        inputs = {"chunks": self.chunk_spec().key}
        if any(port.annotation is ChatModel for port in component.ports):
            inputs["model"] = digest(dict(self._model_identity()))
            inputs["prompts"] = component.extra.get("prompts", "")
        else:
            given = self.dataset.triples or ()
            inputs["given"] = digest([[row.document, row.entities, row.triples] for row in given])
        return Spec("extraction", component.name, component.version, settings, inputs)

    def graph_spec(self) -> Spec:
        """Return the graph's spec."""
        component, settings = self._chosen("graph", "builder")
        inputs = {"extraction": self.extraction_spec().key, "embedder": digest(dict(self._embedder().identity))}
        return Spec("graph", component.name, component.version, settings, inputs)

    def chunk_vector_spec(self) -> Spec:
        """Return the spec of the chunks' vectors; the chunks must be in the store."""
        found = self.store.find(self.chunk_spec())
        texts = [chunk.text for chunk in open_chunks(found.path)] if found else []
        return self.stored_embedder("chunk vectors").spec(texts)

    def lexical_spec(self) -> Spec:
        """Return the lexical index's spec."""
        settings = {**self.config["index"], "language": LANGUAGE}
        return Spec("lexical", "bm25", 1, settings, {"chunks": self.chunk_spec().key})

    def builder(self) -> Component | None:
        """Return the graph builder, or None when the method builds no graph."""
        name = self.config["graph"].get("builder")
        return REGISTRY.get("builder", name) if name else None

    def extractor(self) -> Component:
        """Return the extractor."""
        return REGISTRY.get("extractor", str(self.config["graph"].get("extractor")))

    def _chosen(self, group: str, selector: str) -> tuple[Component, dict[str, Any]]:
        component = REGISTRY.get(selector, self.config[group][selector])
        return component, filled(self.config[group], component.settings)

    # -- the stages --

    async def chunks(self) -> ChunkTable:
        """Return the chunks."""
        component, settings = self._chosen("chunking", "chunker")

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("chunks", len(self.dataset.documents))
            chunks = await asyncio.to_thread(component.call, self.dataset.documents, **settings)
            save_chunks(chunks, folder)
            return {
                "chunks": len(chunks),
                "documents": len(self.dataset.documents),
                "tokens": sum(c.tokens for c in chunks),
            }

        return open_chunks((await self._get("chunks", self.chunk_spec(), build)).path)

    async def extraction(self) -> Extraction:
        """Return the extraction; raise UserError when it stays below its floor."""
        component = self.extractor()
        chunks = await self.chunks()
        lend: dict[Any, Any] = {ChunkTable: chunks}
        ports = {port.annotation for port in component.ports}
        if ChatModel in ports:
            lend[ChatModel] = self._model()
        if GivenOpenIE in ports:
            lend[GivenOpenIE] = self.given_triples()

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("extraction", len(chunks))
            found: Extraction = await _call(component, lend, filled(self.config["graph"], component.settings))
            facts = found.statistics()
            self._floor(facts)
            found.save(folder)
            return {**facts, "spent": self._spend("extraction")}

        return Extraction.open((await self._get("extraction", self.extraction_spec(), build)).path)

    def given_triples(self) -> GivenOpenIE:
        """Return the triples that came with the dataset; raise UserError where none did."""
        if self.dataset.triples is None:
            raise UserError(
                f"The dataset {self.dataset.name} brings no triples, and graph.extractor={self.extractor().name} reads them.",
                "Use graph.extractor=llm, or add an openie file to the dataset.",
            )
        return self.dataset.triples

    def _forget_failed(self) -> None:
        """Remove an extraction whose failures are worth another try, and the graph that was built from it.

        Failures that say something of the server and nothing of the prompt always are; the others with retry_failed. What
        was extracted is in the reply cache, so only the failed calls are made again.
        """
        old = None if "extraction" in self.artifacts else self.store.find(self.extraction_spec())
        failed = set(old.facts["failed"]) if old is not None else set()
        if failed & TRANSIENT or (failed and self.config["execution"]["retry_failed"]):
            self.store.discard(self.extraction_spec())
            self.store.discard(self.graph_spec())

    def _floor(self, facts: Mapping[str, Any]) -> None:
        limits = self.config["execution"]
        if not facts["chunks"] or not any(port.annotation is ChatModel for port in self.extractor().ports):
            return  # floors are for a model's replies; given triples are what they are
        per_chunk = facts["entities"] / facts["chunks"]
        said = ""
        if facts["parse_rate"] < limits["min_parse_rate"]:
            floor = f"execution.min_parse_rate={limits['min_parse_rate']}"
            said = f"only {facts['parse_rate']:.0%} of the chunks gave a readable reply ({floor})"
        elif per_chunk < limits["min_entities"]:
            said = f"only {per_chunk:.2f} entities a chunk were found (execution.min_entities={limits['min_entities']})"
        if said:
            kinds = ", ".join(f"{count} {kind}" for kind, count in facts["failed"].items()) or "no call failed"
            raise UserError(
                f"Extraction stopped: {said}; failures: {kinds}.",
                "Mend the model or its server and run again with execution.retry_failed=true; finished replies are kept.",
            )

    async def graph(self) -> Graph:
        """Return the graph."""
        component, settings = self._chosen("graph", "builder")
        lend: dict[Any, Any]
        self._forget_failed()
        if self.store.find(self.graph_spec()) is not None:
            self._note("extraction", self.extraction_spec())
            lend = {}  # the graph is there: what it was built from need not be
        else:
            lend = {ChunkTable: await self.chunks(), Extraction: await self.extraction()}
        embedder = self.stored_embedder("node vectors")

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("graph", 0)
            arguments = _lent(component, {**lend, Embedder: embedder})
            graph = await asyncio.to_thread(component.call, **arguments, **settings)
            graph.save(folder)
            for made in embedder.artifacts.values():
                self.artifacts["node vectors"] = made
            within = [made.facts for made in embedder.artifacts.values() if made.built]
            embedding = {f"embedding_{unit}": sum(facts[unit] for facts in within) for unit in ("seconds", "cpu_seconds")}
            return {**graph.statistics(), **embedding}

        return Graph.open((await self._get("graph", self.graph_spec(), build)).path)

    def stored_embedder(self, what: str) -> StoredEmbedder:
        """Return the run's embedder, going through the store; ``what`` names the stage for the display."""
        return StoredEmbedder(self._embedder(), self.store, self.progress, what)

    async def node_vectors(self) -> NodeVectors:
        """Return the vectors of the graph's node names."""
        graph = await self.graph()
        return NodeVectors(await self._vectors("node vectors", graph.nodes["name"].to_pylist()), self._embedder())

    async def chunk_vectors(self) -> ChunkVectors:
        """Return the vectors of the chunks."""
        chunks = await self.chunks()
        return ChunkVectors(await self._vectors("chunk vectors", [chunk.text for chunk in chunks]), self._embedder())

    async def _vectors(self, name: str, texts: Sequence[str]) -> NDArray[np.float32]:
        embedder = self.stored_embedder(name)
        matrix = await asyncio.to_thread(embedder.embed, texts, "passage")
        for artifact in embedder.artifacts.values():
            self.artifacts.setdefault(name, artifact)
        return matrix

    async def lexical(self) -> LexicalIndex:
        """Return the lexical index over the chunks."""
        chunks = await self.chunks()

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("lexical index", len(chunks))
            index = self.config["index"]
            LexicalIndex.build([chunk.text for chunk in chunks], folder, k1=index["k1"], b=index["b"])
            return {"chunks": len(chunks)}

        artifact = await self._get("lexical index", self.lexical_spec(), build)
        return LexicalIndex.open(artifact.path, len(chunks))

    def _note(self, name: str, spec: Spec) -> None:
        artifact = self.store.find(spec)
        if artifact is not None:
            self.artifacts.setdefault(name, artifact)

    async def _get(self, name: str, spec: Spec, build: Callable[[Path], Any]) -> Artifact:
        artifact = await self.store.get(spec, build)
        if name not in self.artifacts:  # asked for again, it is there, and all the same this cell may have built it
            self.progress.finish(name, "built" if artifact.built else "in the store")
            self.artifacts[name] = artifact
        return artifact


def _lent(component: Component, lend: Mapping[Any, Any]) -> dict[str, Any]:
    missing = [port for port in component.ports if port.annotation not in lend]
    if missing:
        raise UserError(
            f"{component.kind} {component.name} ({component.where}) takes {missing[0].name} of a type nobody lends here.",
            f"It can take {', '.join(getattr(t, '__name__', str(t)) for t in lend)}.",
        )
    return {port.name: lend[port.annotation] for port in component.ports}


async def _call(component: Component, lend: Mapping[Any, Any], settings: Mapping[str, Any]) -> Any:
    result = component.call(**_lent(component, lend), **settings)
    return await result if inspect.isawaitable(result) else result
