"""RelNode: the nodes at the ends of relationships."""

from typing import Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import neighbours
from graphrag_bench.pipeline.rows import Firsts, best, by_place, merge, stack
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.registry import operator


@operator("node.rel_node", needs=("relationship.name|relationship.description",))
def rel_node(
    graph: Graph,
    relationships: Relationships,
    *,
    rank: Literal["order", "degree", "score"] = "order",
    top_k: int | None = None,
) -> Nodes:
    """Take both ends of the given relationships, each node once.

    By ``order`` nodes stand as the relationships first name them, a source before its target, as LightRAG reads them; the
    score is one over the place. By ``degree`` the score is the number of the node's neighbours over facts, by ``score`` that
    of the best relationship that names it.

    Args:
        graph: the graph.
        relationships: whose ends are taken.
        rank: what orders the nodes.
        top_k: nodes to keep.
    """
    firsts = Firsts(graph.n_nodes)
    rows = []
    for row in relationships:
        ends = np.stack([graph.sources[row.ids], graph.targets[row.ids]], axis=1).ravel()
        if rank == "order":
            ids, place = merge(ends, firsts, np.arange(len(ends)))
            rows.append(by_place(ids, (place,), top_k))
        else:
            ids, scores = merge(ends, firsts, np.repeat(row.scores, 2))
            rows.append(best(ids, neighbours(graph).degrees[ids] if rank == "degree" else scores, top_k))
    return stack(Nodes, rows)
