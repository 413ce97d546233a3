"""Ends: the nodes at the ends of relationships, each scored by what the relationships at it score."""

from typing import Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.rows import Firsts, best, merge, stack
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.registry import operator


@operator("node.ends", needs=("relationship.name|relationship.description",))
def ends(
    graph: Graph,
    relationships: Relationships,
    *,
    rule: Literal["mean", "sum"] = "mean",
    weight: Literal["score", "specificity"] = "specificity",
    top_k: int | None = 5,
) -> Nodes:
    """Take both ends of the given relationships, each node once (HippoRAG 2's seeds out of facts).

    `node.rel_node` ranks nodes as relationships name them; here a node's score is made of those of all its relationships.

    Args:
        graph: the graph.
        relationships: whose ends are taken.
        rule: a node scores the mean or the sum of the given relationships at it.
        weight: that score itself, or divided by the number of chunks that hold the node (HippoRAG's node specificity).
        top_k: nodes to keep.
    """
    firsts = Firsts(graph.n_nodes)
    chunks_of = np.maximum(np.diff(graph.node_chunk.indptr), 1)
    rows = []
    for row in relationships:
        two = np.stack([graph.sources[row.ids], graph.targets[row.ids]], axis=1)
        one_end = two[:, 0] == two[:, 1]  # a loop names its node once
        found = np.concatenate([two[:, 0], two[~one_end, 1]])
        scores = np.concatenate([row.scores, row.scores[~one_end]])
        ids, summed = merge(found, firsts, scores, "sum")
        if rule == "mean":
            summed = summed / merge(found, firsts, np.ones(len(found)), "sum")[1]
        rows.append(best(ids, summed / chunks_of[ids] if weight == "specificity" else summed, top_k))
    return stack(Nodes, rows)
