"""Entity: the communities that given nodes are in."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather
from graphrag_bench.graph.reported import ratings, reported
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.rows import by_place, stack
from graphrag_bench.pipeline.values import Communities, Nodes
from graphrag_bench.registry import operator

_LEVELS = 3  # of a hierarchy that is not known yet


def communities(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many communities are taken at most: one a node and level."""
    levels = [count for count in (settings["max_level"], len(scale.up_to) - 1) if count is not None and count >= 0]
    there = min(scale.inputs["nodes"] * (min(levels, default=_LEVELS - 1) + 1), scale.communities)
    return there if settings["top_k"] is None else min(there, int(settings["top_k"]))


@operator("community.entity", needs=("community", "community.report"), yields=communities)
def entity(
    graph: Graph,
    nodes: Nodes,
    *,
    rank: Literal["rating", "count"] = "rating",
    max_level: int | None = 2,
    top_k: int | None = None,
) -> Communities:
    """Take the communities that hold at least one of the given nodes; one without a report is never taken.

    By ``rating`` (the unified paper's rule) they stand by the rating of their report, one without a rating last, then by how
    many of the given nodes they hold; by ``count`` (GraphRAG's and nano-graphrag's code) by that number, then by rating.
    The score is one over the place; equals share theirs and stand by id.

    Args:
        graph: with communities and reports.
        nodes: the given nodes; their scores do not count.
        rank: what orders the communities.
        max_level: the finest level that is taken, 0 being the coarsest; null takes all.
        top_k: communities to keep.
    """
    of_node = graph.communities.members.T.tocsr()
    taken, rating = reported(graph, max_level), ratings(graph)
    rows = []
    for row in nodes:
        _, at = gather(of_node.indptr, row.ids)
        ids, counts = np.unique(of_node.indices[at], return_counts=True)
        ids, counts = ids[taken[ids]], counts[taken[ids]]
        keys = (-rating[ids], -counts) if rank == "rating" else (-counts, -rating[ids])
        rows.append(by_place(ids, keys, top_k))
    return stack(Communities, rows)
