"""TopInCommunity: of each community, the first of the given nodes that are in it (HiRAG's key entities)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.rows import by_place, stack
from graphrag_bench.pipeline.values import Communities, Nodes
from graphrag_bench.registry import operator


def nodes(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many nodes are taken at most."""
    return min(scale.inputs["nodes"], int(settings["top_m"]) * scale.inputs["communities"])


@operator("node.top_in_community", needs=("community",), yields=nodes)
def top_in_community(graph: Graph, nodes: Nodes, communities: Communities, *, top_m: int = 10) -> Nodes:
    """Take the ``top_m`` best of the given nodes in each of the given communities: HiRAG's key entities.

    They stand in the order of the communities, and within one in their own; a node in several stands where it comes first,
    and counts in each. The score is one over the place.

    Args:
        graph: with its communities.
        nodes: candidates, best first.
        communities: in order.
        top_m: nodes a community.
    """
    members = graph.communities.members.astype(bool)
    rows = []
    for found, into in zip(nodes, communities, strict=True):
        inside = members[into.ids][:, found.ids].toarray()
        taken = inside & (np.cumsum(inside, axis=1) <= top_m)
        _, place = np.nonzero(taken)
        first = np.sort(np.unique(place, return_index=True)[1])
        rows.append(by_place(found.ids[place[first]], (np.arange(len(first)),)))
    return stack(Nodes, rows)
