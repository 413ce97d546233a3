"""Onehop over relationships: those at the given nodes."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, by_degree, gather, incident
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.rows import Firsts, best, merge, stack
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.registry import operator


def relationships(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many relationships are taken, where the given nodes have as many as others."""
    there = scale.inputs["nodes"] * -(-2 * scale.relationships // max(scale.nodes, 1))
    return there if settings["top_k"] is None else min(there, int(settings["top_k"]))


@operator("relationship.onehop", needs=("relationship.name|relationship.description",), yields=relationships)
def onehop(
    graph: Graph,
    nodes: Nodes,
    *,
    kinds: Kinds = FACTS,
    rank: Literal["degree", "score", "weight"] = "degree",
    ends: Literal["either", "both", "source"] = "either",
    top_k: int | None = None,
) -> Relationships:
    """Take all relationships at any of the given nodes, or all among them, each once.

    By ``degree`` the order is GraphRAG's and LightRAG's: the two ends' degrees together, then the weight, both descending.
    The score's whole part is those degrees (neighbours over the given kinds), its fraction the share of the graph's
    distinct weights that are below the relationship's: it says the order exactly and is the same in every question.

    Args:
        graph: whose relationships are taken, in both directions.
        nodes: where they touch.
        kinds: the kinds of relationship that are taken.
        rank: by degree, by the better score of a given node at an end, or by weight.
        ends: which end must be among the given nodes: either; both (ArchRAG's paper); the source (its code).
        top_k: relationships to keep.
    """
    touching = incident(graph, kinds)
    firsts = Firsts(graph.n_relationships)
    scores = by_degree(graph, kinds) if rank == "degree" else graph.weights
    rows = []
    for row in nodes:
        origin, at = gather(touching.indptr, row.ids)
        # the row stands best first, so of a relationship's two ends the better node is the first
        ids, reached = merge(touching.relationships[at], firsts, row.scores[origin])
        if ends != "either":
            inside = np.isin(graph.sources[ids], row.ids)
            inside &= np.isin(graph.targets[ids], row.ids) if ends == "both" else True
            ids, reached = ids[inside], reached[inside]
        rows.append(best(ids, reached if rank == "score" else scores[ids], top_k))
    return stack(Relationships, rows)
