"""The probe's toy corpus: three chunks, one of them without a fact, and a graph of each shape over them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders.kg import build
from graphrag_bench.graph.communities import Hierarchy, ReportRows
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import ATTRIBUTES, Graph, incidence
from graphrag_bench.index.hierarchy import HierarchyIndex, community_layers
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.texts import community_texts, node_texts, relationship_texts
from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions

TEXTS = (
    "Ada Brown built the Glass Bridge in Norhaven.",
    "The Glass Bridge spans the river Ulm.",
    "Ulm Mill burned in 1901.",
)
_TRIPLES = (
    (("Ada Brown", "built", "Glass Bridge"), ("Glass Bridge", "is in", "Norhaven")),
    (("Glass Bridge", "spans", "Ulm"),),
    (),
)
ENTITY_GRAPH = frozenset(name for name in ATTRIBUTES if name not in ("node.text", "node.layer"))
QUESTIONS = Questions(
    ("p1", "p2", "p3"),
    ("Who built the Glass Bridge?", "Which river does the bridge in Norhaven span?", "zzz qqq?"),
    failed={2: "probe: this question has failed before"},
)


def toy_chunks() -> ChunkTable:
    """Return the toy's chunks."""
    return tuple(Chunk(number, text, "", (f"d{number}",), len(text.split())) for number, text in enumerate(TEXTS))


def toy_graph(embedder: Embedder, attributes: Iterable[str] = ENTITY_GRAPH) -> Graph:
    """Return a graph over the chunks with the given attributes: of entities, of passages, or a tree of summaries."""
    carried = frozenset(attributes)
    of_texts = _tree if "node.layer" in carried else _passages
    graph = of_texts() if "node.text" in carried else _entities(embedder)
    graph = Graph(graph.nodes, graph.relationships, graph.node_chunk, graph.relationship_chunk, carried)
    if "community" not in carried:
        return graph
    members = incidence(
        np.repeat([0, 1], [graph.n_nodes, 2]), np.array([*range(graph.n_nodes), 0, 1]), (2, graph.n_nodes)
    )
    hierarchy = Hierarchy(np.array([0, 1], np.int32), np.array([-1, 0], np.int32), members)
    rows = ReportRows()
    rows.add("Norhaven", "A town and its bridge.", "Norhaven has a bridge over the river Ulm.", rating=6.0)
    rows.add("The bridge", "Who built it.", "Ada Brown built the Glass Bridge.", rating=4.0)
    return graph.with_communities(hierarchy, rows.reports() if "community.report" in carried else None)


def toy(folder: Path, model: ChatModel, attributes: Iterable[str] = ENTITY_GRAPH) -> dict[object, Any]:
    """Return loans over the toy corpus, with a graph of the given attributes."""
    embedder = HashingEmbedder()
    graph = toy_graph(embedder, attributes)
    folder.mkdir(parents=True, exist_ok=True)
    nodes = NodeVectors(embedder.embed(node_texts(graph, "auto")), embedder)
    reported = community_texts(graph, "summary") if graph.reports is not None else []
    communities = CommunityVectors(embedder.embed(reported), embedder)
    return {
        Graph: graph,
        ChatModel: model,
        Embedder: embedder,
        ChunkTable: toy_chunks(),
        NodeVectors: nodes,
        RelationshipVectors: RelationshipVectors(embedder.embed(relationship_texts(graph, "auto")), embedder),
        ChunkVectors: ChunkVectors(embedder.embed(list(TEXTS)), embedder),
        CommunityVectors: communities,
        HierarchyIndex: HierarchyIndex(nodes, communities, community_layers(graph) if reported else []),
        LexicalIndex: LexicalIndex.build(list(TEXTS), folder, k1=1.5, b=0.75),
        TfidfIndex: TfidfIndex.build(node_texts(graph, "auto"), folder),
        GivenEntities: GivenEntities({"p1": ("Glass Bridge",), "p2": (), "p3": ("Ulm",)}),
    }


def _entities(embedder: Embedder) -> Graph:
    graph = build(toy_chunks(), Extraction(tuple(() for _ in TEXTS), _TRIPLES), embedder)
    names = graph.column("nodes", "name")
    labels = graph.column("relationships", "name")
    nodes = graph.nodes.append_column("type", pa.array(["thing"] * len(names)))
    nodes = nodes.append_column("description", pa.array([f"{name} is known in Norhaven." for name in names]))
    relationships = graph.relationships.append_column("description", pa.array([f"It is said: {label}." for label in labels]))
    relationships = relationships.append_column("keywords", pa.array([f"{label}, town" for label in labels]))
    return Graph(nodes, relationships, graph.node_chunk, graph.relationship_chunk, graph.attributes)


def _passages() -> Graph:
    count = len(TEXTS)
    nodes = pa.table({"name": [f"passage {n}" for n in range(count)], "text": list(TEXTS)})
    links = _links([0, 1], [1, 2], "passage", ["Glass Bridge", "Ulm"])
    return Graph(nodes, links, _own(count, count), incidence(np.empty(0), np.empty(0), (2, count)), frozenset())


def _tree() -> Graph:
    count = len(TEXTS)
    names = [*(f"passage {n}" for n in range(count)), "summary 1.0"]
    texts = [*TEXTS, "A bridge over the river Ulm."]
    nodes = pa.table({"name": names, "text": texts, "layer": pa.array([0] * count + [1], pa.int32())})
    links = _links([count] * count, list(range(count)), "member", [""] * count)
    return Graph(nodes, links, _own(count + 1, count), incidence(np.empty(0), np.empty(0), (count, count)), frozenset())


def _links(sources: list[int], targets: list[int], kind: str, names: list[str]) -> pa.Table:
    return pa.table(
        {
            "source": pa.array(sources, pa.int32()),
            "target": pa.array(targets, pa.int32()),
            "kind": [kind] * len(sources),
            "name": names,
            "weight": pa.array([1.0] * len(sources), pa.float32()),
        }
    )


def _own(nodes: int, chunks: int) -> Any:
    return incidence(np.arange(chunks), np.arange(chunks), (nodes, chunks))
