"""The offline stages of a cell that make its graph, each an artifact: chunks, extraction, graph, communities, reports."""

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphrag_bench.chunking.table import open_chunks, save_chunks
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.community.layered import Clustered, ReportWriter
from graphrag_bench.config.schema import filled
from graphrag_bench.data.types import Dataset, GivenOpenIE
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.graph.extraction import Extraction, RichExtraction, open_extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.cache import TRANSIENT
from graphrag_bench.pipeline.clustering import PARTS, bound_parts, parts_of, writes_reports
from graphrag_bench.pipeline.floors import failed_calls, hold_floor
from graphrag_bench.pipeline.lending import lent
from graphrag_bench.progress import Progress
from graphrag_bench.registry import REGISTRY, Component
from graphrag_bench.store.artifacts import Artifact, Spec, Store, digest
from graphrag_bench.store.embedded import StoredEmbedder

Spend = Callable[[str], dict[str, Any]]  # stage -> ledger totals of it so far


def asks(component: Component, settings: Mapping[str, Any]) -> bool:
    """Say whether a component, with these settings, asks the chat model."""
    if not any(port.annotation is ChatModel for port in component.ports):
        return False
    spends = component.extra.get("spends", True)  # a truth, or what says it of the settings
    return bool(spends(filled(settings, component.settings)) if callable(spends) else spends)


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
        self._made: Graph | None = None
        self._digests: dict[str, str] = {}  # of what is read again for every spec: the corpus, files

    # -- what is wanted: specs need no work, so `plan` and `check` can ask for them --

    def chunk_spec(self) -> Spec:
        """Return the chunks' spec."""
        component, settings = self._chosen("chunking", "chunker")
        documents = self._digest("documents", lambda: digest([[d.id, d.title, d.text] for d in self.dataset.documents]))
        return Spec("chunks", component.name, component.version, settings, {"documents": documents})

    def extraction_spec(self) -> Spec:
        """Return the extraction's spec."""
        component = self.extractor()
        inputs = {"chunks": self.chunk_spec().key, **self._inputs(component, self.config["graph"])}
        if any(port.annotation == GivenOpenIE for port in component.ports):
            given = self.dataset.triples or ()
            rows = ([row.document, row.entities, row.triples] for row in given)
            inputs["given"] = self._digest("given", lambda: digest(list(rows)))
        settings = filled(self.config["graph"], component.settings)
        return Spec("extraction", component.name, component.version, settings, inputs)

    def graph_spec(self) -> Spec:
        """Return the graph's spec."""
        component, settings = self._chosen("graph", "builder")
        inputs = {"chunks": self.chunk_spec().key, **self._inputs(component, self.config["graph"])}
        if self.extracts():
            inputs["extraction"] = self.extraction_spec().key
        return Spec("graph", component.name, component.version, settings, inputs)

    def hierarchy_spec(self) -> Spec:
        """Return the spec of the communities."""
        component, settings = self._chosen("community", "clusterer")
        group = self.config["community"]
        inputs = {"graph": self.graph_spec().key, **self._inputs(component, group)}
        for port, part in parts_of(component, group).items():
            if part is not None:
                inputs[PARTS[port][0]] = digest([part.name, part.version, filled(group, part.settings)])
        if writes_reports(component, group) and (reporter := self.reporter()) is not None:
            said = [reporter.name, reporter.version, filled(group, reporter.settings), self._inputs(reporter, group)]
            inputs["reports"] = digest(said)
        return Spec("communities", component.name, component.version, settings, inputs)

    def reports_spec(self) -> Spec:
        """Return the spec of the communities' reports."""
        component = self.reporter()
        assert component is not None
        settings = filled(self.config["community"], component.settings)
        inputs = {"communities": self.hierarchy_spec().key, **self._inputs(component, self.config["community"])}
        return Spec("reports", component.name, component.version, settings, inputs)

    def _inputs(self, component: Component, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return what a component's output hangs on beside its settings: model, prompts, embedder, files."""
        inputs = {}
        if asks(component, settings):
            inputs["model"] = digest(dict(self._model_identity()))
            inputs["prompts"] = component.extra.get("prompts", "")
        if any(port.annotation is Embedder for port in component.ports):
            inputs["embedder"] = digest(dict(self._embedder().identity))
        if read := component.extra.get("inputs"):
            name = f"{component.kind} {component.name}"
            inputs["files"] = self._digest(name, lambda: str(read(filled(settings, component.settings))))
        return inputs

    def _digest(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._digests:
            self._digests[name] = make()
        return self._digests[name]

    def look(self) -> None:
        """Raise UserError where a file that a component reads is not there, or is none of those it can read."""
        for component, settings in self.components:
            if "inputs" in component.extra:
                self._inputs(component, settings)

    def builder(self) -> Component | None:
        """Return the graph builder, or None when the method builds no graph."""
        name = self.config["graph"].get("builder")
        return REGISTRY.get("builder", name) if name else None

    def extractor(self) -> Component:
        """Return the extractor."""
        return REGISTRY.get("extractor", str(self.config["graph"].get("extractor")))

    def extracts(self) -> bool:
        """Say whether the graph is made of an extraction."""
        builder = self.builder()
        return builder is not None and any(port.annotation in (Extraction, RichExtraction) for port in builder.ports)

    def clusterer(self) -> Component | None:
        """Return the clusterer, or None where no communities are looked for."""
        name = self.config["community"].get("clusterer")
        return REGISTRY.get("clusterer", name) if name else None

    def reporter(self) -> Component | None:
        """Return the report builder, or None where no reports are written."""
        name = self.config["community"].get("reports") if self.clusterer() else None
        return REGISTRY.get("reporter", name) if name else None

    @property
    def components(self) -> list[tuple[Component, Mapping[str, Any]]]:
        """The components that make the graph, with the group's settings."""
        builder = self.builder()
        if builder is None:
            return []
        graph, community = self.config["graph"], self.config["community"]
        made = [(builder, graph), *([(self.extractor(), graph)] if self.extracts() else [])]
        if (clusterer := self.clusterer()) is not None:
            parts = parts_of(clusterer, community).values()
            made += [(found, community) for found in (clusterer, *parts, self.reporter()) if found is not None]
        return made

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

        return open_chunks((await self.get("chunks", self.chunk_spec(), build)).path)

    async def extraction(self) -> Extraction | RichExtraction:
        """Return the extraction; raise UserError when it stays below its floor."""
        component = self.extractor()
        chunks = await self.chunks()

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("extraction", len(chunks))
            lend = {ChunkTable: chunks, Embedder: self.stored_embedder("chunk vectors")}
            found = await self._call(component, "graph", lend)
            facts: dict[str, Any] = found.statistics()
            if asks(component, self.config["graph"]):  # floors are for a model's replies; given triples are what they are
                hold_floor("Extraction", facts, facts["chunks"], "chunk", self.config["execution"])
            found.save(folder)
            return {**facts, "spent": self._spend("extraction")}

        return open_extraction((await self.get("extraction", self.extraction_spec(), build)).path)

    def given_triples(self) -> GivenOpenIE:
        """Return the triples that came with the dataset; raise UserError where none did."""
        if self.dataset.triples is None:
            raise UserError(
                f"The dataset {self.dataset.name} brings no triples, and graph.extractor={self.extractor().name} reads them.",
                "Use graph.extractor=llm, or add an openie file to the dataset.",
            )
        return self.dataset.triples

    def stale(self) -> dict[str, Spec]:
        """Return the stages in the store whose failures are worth another try, and every stage built from one, by name.

        Failures that say something of the server and nothing of the prompt always are; the others with retry_failed. What
        was done is in the reply cache, so only the failed calls are made again.
        """
        if self.builder() is None:
            return {}
        stages = [("extraction", self.extraction_spec())] if self.extracts() else []
        stages.append(("graph", self.graph_spec()))
        stages += [("communities", self.hierarchy_spec())] if self.clusterer() else []
        stages += [("reports", self.reports_spec())] if self.reporter() else []
        found: dict[str, Spec] = {}
        for name, spec in stages:
            old = None if name in self.artifacts else self.store.find(spec)
            failed = set(failed_calls(old.facts)) if old is not None else set()
            if found or failed & TRANSIENT or (failed and self.config["execution"]["retry_failed"]):
                found[name] = spec
        return found

    async def graph(self, *, mend: bool = True) -> Graph:
        """Return the graph, with its communities and their reports where the configuration asks for them.

        Args:
            mend: build again what is stale (see `stale`); False takes what the store holds as it is.
        """
        if self._made is None:
            for spec in self.stale().values() if mend else ():
                self.store.discard(spec)
            graph = await self._graph()
            if self.clusterer() is not None:
                hierarchy = await self._hierarchy(graph)
                graph = graph.with_communities(hierarchy, None)
                if self.reporter() is not None:
                    graph = graph.with_communities(hierarchy, await self._reports(graph))
            self._made = graph  # one object for all who read it: its views of itself are kept with it
        return self._made

    async def _graph(self) -> Graph:
        component, _ = self._chosen("graph", "builder")
        lend: dict[Any, Any] = {}
        if self.store.find(self.graph_spec()) is not None:  # what it was built from need not be there
            self._note("extraction", self.extraction_spec()) if self.extracts() else None
        else:
            lend = {ChunkTable: await self.chunks()}
            if self.extracts():
                found = await self.extraction()
                rich = isinstance(found, RichExtraction)
                lend[Extraction] = found.plain() if isinstance(found, RichExtraction) else found
                lend[RichExtraction] = found if rich else RichExtraction.of(lend[Extraction])

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("graph", 0)
            embedder = self.stored_embedder("node vectors")
            made = await self._call(component, "graph", {**lend, Embedder: embedder})
            built = made if isinstance(made, Built) else Built(made, {})
            built.graph.save(folder)
            for artifact in embedder.artifacts.values():
                self.artifacts.setdefault("node vectors", artifact)
            within = [artifact.facts for artifact in embedder.artifacts.values() if artifact.built]
            embedding = {f"embedding_{unit}": sum(facts[unit] for facts in within) for unit in ("seconds", "cpu_seconds")}
            failed: dict[str, int] = {}
            for reason in built.failed.values():
                kind = reason.split(":")[0]
                failed[kind] = failed.get(kind, 0) + 1
            spent = self._spend("graph")
            return {
                **built.graph.statistics(), **built.facts, **embedding, "failed": failed, **({"spent": spent} if spent else {}),
            }

        return Graph.open((await self.get("graph", self.graph_spec(), build)).path)

    async def _hierarchy(self, graph: Graph) -> Hierarchy:
        component, _ = self._chosen("community", "clusterer")
        group = self.config["community"]
        embedder = self.stored_embedder("vectors")

        writing = {"seconds": 0.0, "cpu_seconds": 0.0}

        async def write(grown: Graph, written: Reports | None) -> Reports:
            chunks = await self.chunks()
            started, cpu = time.perf_counter(), time.process_time()
            found = await self._write(grown, chunks, written)
            writing["seconds"] += time.perf_counter() - started
            writing["cpu_seconds"] += time.process_time() - cpu
            return found

        async def build(folder: Path) -> dict[str, Any]:
            self.progress.stage("communities", 0)
            lend = {Graph: graph, Embedder: embedder, ReportWriter: write if self.reporter() else None}
            made = await self._call(component, "community", {**lend, **bound_parts(component, group)})
            found = made if isinstance(made, Clustered) else Clustered(made)
            found.hierarchy.save(folder)
            # first come the nodes' vectors, which their index books; those of the layers above are the clustering's own
            within = [artifact.facts for artifact in list(embedder.artifacts.values())[:1] if artifact.built]
            embedding = {f"embedding_{unit}": sum(facts[unit] for facts in within) for unit in ("seconds", "cpu_seconds")}
            facts = {**found.hierarchy.statistics(), **found.facts, **embedding}
            if found.reports is not None:
                reported = self._reported(found.reports)
                found.reports.save(folder)
                # what they cost is booked once, by the stage that hands the reports on
                facts |= {"reports": reported, "failed": reported["failed"], "reports_spent": self._spend("reports")}
                facts |= {f"reports_{unit}": round(value, 3) for unit, value in writing.items()}
            return facts

        return Hierarchy.open((await self.get("communities", self.hierarchy_spec(), build)).path)

    async def _reports(self, graph: Graph) -> Reports:
        chunks: ChunkTable = () if self.store.find(self.reports_spec()) is not None else await self.chunks()

        async def build(folder: Path) -> dict[str, Any]:
            clustered = self.artifacts["communities"]
            if "reports" in clustered.facts:  # written layer by layer while the communities were looked for
                Reports.open(clustered.path).save(folder)
                facts, spent = dict(clustered.facts["reports"]), clustered.facts["reports_spent"]
                facts |= {unit: clustered.facts.get(f"reports_{unit}", 0.0) for unit in ("seconds", "cpu_seconds")}
            else:
                self.progress.stage("reports", graph.n_communities)
                written = await self._write(graph, chunks, None)
                facts, spent = self._reported(written), self._spend("reports")
                written.save(folder)
            return {**facts, **({"spent": spent} if spent else {})}

        return Reports.open((await self.get("reports", self.reports_spec(), build)).path)

    async def _write(self, graph: Graph, chunks: ChunkTable, written: Reports | None) -> Reports:
        """Have the report builder report on the graph's communities."""
        component = self.reporter()
        assert component is not None
        lend = {Graph: graph, ChunkTable: chunks, Embedder: self.stored_embedder("vectors"), Reports: written}
        made: Reports = await self._call(component, "community", lend)
        return made

    def _reported(self, reports: Reports) -> dict[str, Any]:
        """Return the facts of finished reports; raise UserError where too many failed."""
        facts, component = reports.statistics(), self.reporter()
        if component is not None and asks(component, self.config["community"]):
            hold_floor("Writing reports", facts, facts["reports"], "report", self.config["execution"])
        return facts

    async def _call(self, component: Component, group: str, lend: dict[Any, Any]) -> Any:
        """Call a component with what it takes and its settings; one that does not ask the model gets none."""
        settings = filled(self.config[group], component.settings)
        ports = {port.annotation for port in component.ports}
        if ChatModel in ports:
            lend[ChatModel] = self._model() if asks(component, self.config[group]) else None
        if GivenOpenIE in ports:
            lend[GivenOpenIE] = self.given_triples()
        arguments = lent(component, lend)
        if inspect.iscoroutinefunction(component.call):
            return await component.call(**arguments, **settings)
        return await asyncio.to_thread(component.call, **arguments, **settings)

    def embedder(self) -> Embedder:
        """Return the run's embedder."""
        return self._embedder()

    def stored_embedder(self, what: str) -> StoredEmbedder:
        """Return the run's embedder, going through the store; ``what`` names the stage for the display."""
        return StoredEmbedder(self._embedder(), self.store, self.progress, what)

    def _note(self, name: str, spec: Spec) -> None:
        artifact = self.store.find(spec)
        if artifact is not None:
            self.artifacts.setdefault(name, artifact)

    async def get(self, name: str, spec: Spec, build: Callable[[Path], Any]) -> Artifact:
        """Return an artifact of this cell, built if it is not there, and note it under the stage's name."""
        artifact = await self.store.get(spec, build)
        if name not in self.artifacts:  # asked for again, it is there, and all the same this cell may have built it
            self.progress.finish(name, "built" if artifact.built else "in the store")
            self.artifacts[name] = artifact
        return artifact
