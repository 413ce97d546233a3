"""Aggregator over relationships: a relationship scores the sum of its two ends."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.registry import operator


@operator("relationship.aggregator")
def aggregator(graph: Graph, nodes: Nodes, *, top_k: int | None = None) -> Relationships:
    """Score every fact by the scores of its two ends, r(u, v) = s(u) + s(v).

    Args:
        graph: whose facts are scored; other kinds of relationship are not.
        nodes: node scores, as Personalised PageRank makes them.
        top_k: relationships to keep; null keeps all with a score.
    """
    scores = nodes.dense(graph.n_nodes)
    facts = graph.facts
    out = np.zeros((len(nodes), graph.n_relationships))
    out[:, facts] = scores[:, graph.sources[facts]] + scores[:, graph.targets[facts]]
    return Relationships.of_dense(out, top_k)
