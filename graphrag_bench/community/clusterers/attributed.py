"""Attributed hierarchical clustering (ArchRAG, Algorithm 1): layer by layer, by what is joined and by what it says."""

import asyncio
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.augmented import Augmented, together
from graphrag_bench.community.coarsening import Labels, fact_counts, mean_vectors, renumbered, stacked
from graphrag_bench.community.layered import Augment, Clustered, Layer, Partition, ReportWriter
from graphrag_bench.community.simple import Edges, simple_edges
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.neighbours import nearest_neighbours, pair_cosines
from graphrag_bench.index.texts import NodeText, community_texts, node_texts
from graphrag_bench.registry import register

_FLOOR = 1e-3  # a pair of unlike nodes is a weak edge, not none


@register(
    "clusterer",
    "attributed",
    needs=("node.name|node.text",),
    writes=lambda settings: settings["vectors"] == "reports",
)
async def attributed(
    graph: Graph,
    embedder: Embedder,
    augment: Augment | None,
    partition: Partition,
    write: ReportWriter | None,
    *,
    max_layers: int = 4,
    min_communities: int = 5,
    vectors: Literal["reports", "members"] = "reports",
    weight: Literal["cosine", "given"] = "cosine",
    isolated: Literal["nearest", "own"] = "nearest",
    node_text: NodeText = "auto",
    seed: int = 0,
) -> Clustered:
    """Augment a layer, weigh its edges, divide it, and make its communities the nodes of the next layer.

    Layer 1's nodes are the entities, joined by facts. A community is joined to another by as many as there are facts
    between their entities, and stands where its report's title and summary do, or where its entities do in the mean. It ends
    when a layer would have fewer than ``min_communities``, or no fewer than it has nodes, or with ``max_layers``. No
    entity is lost: each is in one community of every layer.

    Args:
        graph: whose facts are walked.
        embedder: embeds the entities, and the reports.
        augment: joins similar nodes; None joins none.
        partition: divides one layer.
        write: writes reports, where ``vectors`` wants them.
        max_layers: layers of communities at most (ArchRAG's code: 4; with the entities, the paper's 5).
        min_communities: a layer of fewer is not made (ArchRAG: 5).
        vectors: of a community: its report's (a report that failed: the mean), or the mean of its entities', at length 1.
        weight: of every edge: the cosine of its ends, at least 0.001 (ArchRAG's code; the paper prints 1 minus it); or as
            given: facts' weights, counts between communities, and the augmentation's own for what it adds.
        isolated: a node that is joined to none even so is joined to its nearest by cosine, or stays alone.
        node_text: what of an entity is embedded; see ``node_texts``.
        seed: of the search for the nearest of isolated nodes, where there are too many to compare them all.

    Returns:
        Level 0 is the last layer. Facts: what each layer was made of, and why there is no further one.

    Raises:
        UserError: A setting is out of its range, or nothing writes the reports that are wanted.
    """
    for name, value in (("max_layers", max_layers), ("min_communities", min_communities)):
        if value < 1:
            raise UserError(f"community.{name} is {value}.", "Write 1 or more.")
    if vectors == "reports" and write is None:
        raise UserError(
            "community.vectors=reports needs reports, and none are written.",
            "Set community.reports=extractive or model; or community.vectors=members.",
        )
    texts = node_texts(graph, node_text)
    entities = await asyncio.to_thread(_embedded, embedder, texts)
    layer = Layer(entities, simple_edges(graph))
    labels: list[Labels] = []  # of each layer's nodes
    of_entity = np.arange(graph.n_nodes)
    reports: Reports | None = None
    facts: list[dict[str, Any]] = []
    stopped = "max_layers"
    while len(labels) < max_layers:
        edges, fact = await asyncio.to_thread(_joined, layer, augment, weight, isolated, seed)
        found = renumbered(await asyncio.to_thread(partition, Layer(layer.vectors, edges)))
        count = int(found.max(initial=-1)) + 1
        if count < min_communities or count >= len(layer):
            stopped = "min_communities" if count < min_communities else "no_reduction"
            break
        labels.append(found)
        of_entity = found[of_entity]
        facts.append({**fact, "communities": count, "largest": int(np.bincount(found).max())})
        means = mean_vectors(entities, of_entity, count)
        if vectors == "reports" and write is not None:
            grown = graph.with_communities(stacked(labels, graph.n_nodes), None)
            reports = await write(grown, reports)
            if len(labels) < max_layers:
                said = community_texts(grown.with_communities(grown.communities, reports), "summary")[:count]
                means = await asyncio.to_thread(_embedded, embedder, said, means)
        layer = Layer(means, fact_counts(graph, of_entity, count))
    return Clustered(stacked(labels, graph.n_nodes), reports, {"layers": facts, "stopped": stopped})


def _embedded(
    embedder: Embedder, texts: list[str], otherwise: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return the texts' vectors; where a text is empty, the other vector, or zeros."""
    there = np.array([bool(text.strip()) for text in texts], dtype=bool)
    if there.all():
        return np.asarray(embedder.embed(texts, "passage"), dtype=np.float32)
    found = np.zeros((len(texts), embedder.dim), np.float32) if otherwise is None else otherwise.copy()
    found[there] = embedder.embed([text for text in texts if text.strip()], "passage")
    return found


def _joined(
    layer: Layer, augment: Augment | None, weight: str, isolated: str, seed: int
) -> tuple[Edges, dict[str, Any]]:
    """Return the edges to cluster with their weights, and what was done."""
    n = len(layer)
    found: Any = layer.edges if augment is None else augment(layer)
    edges, said = found if isinstance(found, Augmented) else (found, {})
    alone = np.ones(n, dtype=bool)
    alone[edges[0]] = alone[edges[1]] = False
    fact = {
        "nodes": n, "edges": len(layer.edges[0]), "augmented": len(edges[0]), "isolated": int(alone.sum()), **said,
    }  # fmt: skip
    if isolated == "nearest" and alone.any():
        rows = np.flatnonzero(alone)
        near = nearest_neighbours(layer.vectors, 1, "auto", seed, rows)
        there = near.ids[:, 0] >= 0
        ends = rows[there], near.ids[there, 0]
        edges = together(edges, *ends, np.maximum(near.cosines[there, 0], _FLOOR), n)
    if weight == "cosine":
        left, right, _ = edges
        edges = left, right, np.maximum(pair_cosines(layer.vectors, left, right), _FLOOR)
    return edges, fact
