"""Personalised PageRank over the whole graph, a block of questions at once."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.walks import personalised_pagerank
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


@operator("node.ppr")
def ppr(graph: Graph, seeds: Nodes, *, damping: float = 0.85, weighted: bool = True, top_k: int | None = None) -> Nodes:
    """Rank nodes by Personalised PageRank, restarting at the seeds in proportion to their scores.

    Args:
        graph: walked undirected, every kind of relationship, parallel ones merged.
        seeds: where the walk restarts; negative scores count as none.
        damping: the probability to follow an edge (0.5 in HippoRAG, 0.85 in FastGraphRAG).
        weighted: whether edge weights count.
        top_k: nodes to keep; null keeps every node the walk reaches.
    """
    restart = np.maximum(seeds.dense(graph.n_nodes), 0.0)
    return Nodes.of_dense(personalised_pagerank(graph.adjacency(weighted), restart, damping), top_k)
