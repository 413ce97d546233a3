"""What of a cell is embedded and searched: texts, vectors and engines, as far as the store holds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_bench.cellrun import CellRun
from graphrag_bench.chunking.table import open_chunks
from graphrag_bench.config.schema import filled
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.engine import Backend
from graphrag_bench.index.hierarchy import HierarchyIndex
from graphrag_bench.index.texts import community_texts, node_texts, relationship_texts
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.llm.estimate import Bound, Calls, Scale
from graphrag_bench.pipeline.loans import INDEXES
from graphrag_bench.registry import REGISTRY
from graphrag_bench.store.artifacts import digest

_MB = 1e6
_SUMMARY_TOKENS = 80  # of a report's title and summary
Texts = Sequence[str] | None  # None while they are not known


@dataclass
class Row:
    """One artifact of vectors or of an engine over them."""

    name: str
    asked: Calls
    megabytes: float
    there: bool
    key: str


class Vectored:
    """The vectors that a cell's steps search.

    Attributes:
        text_key: what the texts of the graph's elements hang on.
    """

    def __init__(self, run: CellRun, scale: Scale) -> None:
        self._run, self._scale = run, scale
        self._stages, self._store = run.stages, run.session.store
        self._settings = run.config["index"]
        self._batch = served_batch(run)
        found = self._store.find(self._stages.chunk_spec())
        self._chunks: Texts = [chunk.text for chunk in open_chunks(found.path)] if found else None
        self._graph = self._opened()
        settings = [self._settings.get(f"{kind}_text") for kind in ("node", "relationship", "community")]
        self.text_key = f"{self._graph_key()} {settings}"

    def wanted(self) -> Iterator[Row]:
        """Yield the vectors that are lent, and the engine over each where the backend makes one."""
        loans, scale, graph = self._run.cell.plan.loans, self._scale, self._graph
        chunk_key = self._stages.chunk_spec().key
        if ChunkVectors in loans or (NodeVectors in loans and scale.passages):
            yield self._vectors(ChunkVectors, scale.chunks, scale.chunk, self._chunks, chunk_key)
        if ChunkVectors in loans:
            yield from self._engine(ChunkVectors, scale.chunks, self._chunks, chunk_key)
        both = HierarchyIndex in loans  # it reads the vectors of nodes and communities
        if NodeVectors in loans or both:
            texts = node_texts(graph, self._settings["node_text"]) if graph else None
            # a tree's leaves are the chunks, and so are their vectors
            new = scale.nodes - scale.chunks if scale.passages else scale.nodes
            rest = texts[scale.chunks :] if texts is not None and scale.passages else texts
            if new:
                yield self._vectors(NodeVectors, new, scale.node_tokens, rest, self.text_key)
            if NodeVectors in loans:
                yield from self._engine(NodeVectors, scale.nodes, texts, self.text_key)
        if RelationshipVectors in loans:
            texts = relationship_texts(graph, self._settings["relationship_text"]) if graph else None
            yield self._vectors(RelationshipVectors, scale.relationships, scale.fact_tokens, texts, self.text_key)
            yield from self._engine(RelationshipVectors, scale.relationships, texts, self.text_key)
        if CommunityVectors in loans or both:
            reported = graph is not None and graph.reports is not None
            texts = community_texts(graph, self._settings["community_text"]) if graph and reported else None
            whole = self._settings["community_text"] == "report"
            length = scale.report_tokens if whole else min(_SUMMARY_TOKENS, scale.report_tokens)
            said = texts and [text for text in texts if text.strip()]  # a report that failed has no vector
            yield self._vectors(CommunityVectors, scale.communities, length, said, self.text_key)
            if CommunityVectors in loans:
                yield from self._engine(CommunityVectors, scale.communities, texts, self.text_key)
        if both and self._backend().approximate:
            spec = self._run.indexes.hierarchy_spec(graph) if graph is not None and graph.reports is not None else None
            there = spec is not None and self._store.find(spec) is not None
            megabytes = (scale.nodes + scale.communities) * self._vector
            yield Row(INDEXES[HierarchyIndex], Calls(), megabytes, there, f"{INDEXES[HierarchyIndex]} {self.text_key}")

    def tfidf(self) -> bool:
        """Say whether the TF-IDF index of the graph's nodes is there."""
        if self._graph is None:
            return False
        texts = node_texts(self._graph, self._settings["node_text"])
        return self._store.find(self._run.indexes.tfidf_spec(texts)) is not None

    def _vectors(self, kind: type, count: int, length: float, texts: Texts, key: str) -> Row:
        name = INDEXES[kind]
        count = count if texts is None else len(texts)
        asked = Calls()
        if self._batch:
            bound: Bound = "about" if texts is None and kind is not ChunkVectors else ""
            asked = Calls(-(-count // self._batch), round(count * length), 0, bound)
        there = False
        if texts is not None:
            there = self._store.find(self._stages.stored_embedder(name).spec(texts)) is not None
        return Row(name, asked, count * self._vector, there, f"{name} {key}")

    def _engine(self, kind: type, count: int, texts: Texts, key: str) -> Iterator[Row]:
        if not self._backend().approximate:
            return
        there = texts is not None and self._store.find(self._run.indexes.engine_spec(digest(list(texts)))) is not None
        name = f"{INDEXES[kind]}' search"
        yield Row(name, Calls(), count * self._vector, there, f"{name} {key}")

    def _backend(self) -> Backend:
        component = REGISTRY.get("index", self._settings["backend"])
        made: Backend = component.call(**filled(self._settings, component.settings))
        return made

    @property
    def _vector(self) -> float:
        return 4.0 * self._run.session.embedder(self._run.config).dim / _MB

    def _opened(self) -> Graph | None:
        """Return the graph with what was found out of it, where it is there."""
        stages, store = self._stages, self._store
        found = store.find(stages.graph_spec()) if stages.builder() else None
        graph = Graph.open(found.path) if found else None
        divided = store.find(stages.hierarchy_spec()) if graph and stages.clusterer() else None
        if graph is None or divided is None:
            return graph
        written = store.find(stages.reports_spec()) if stages.reporter() else None
        return graph.with_communities(Hierarchy.open(divided.path), Reports.open(written.path) if written else None)

    def _graph_key(self) -> str:
        stages = self._stages
        if stages.builder() is None:
            return ""
        return (stages.reports_spec() if stages.reporter() else stages.graph_spec()).key


def served_batch(run: CellRun) -> int:
    """Return how many texts a call to the embedder holds where it is asked over the network, and may cost; else 0."""
    component = REGISTRY.get("embedder", run.config["embedder"]["backend"])
    if "base_url" not in component.settings:
        return 0
    return int(filled(run.config["embedder"], component.settings).get("batch_size", 1))
