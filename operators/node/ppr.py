"""Personalised PageRank over the whole graph, a block of questions at once."""

from typing import Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.reduction import check_tolerance, reduced_walk
from graphrag_bench.graph.walks import personalised_pagerank
from graphrag_bench.pipeline.values import Nodes, Row
from graphrag_bench.registry import operator

# Measured on graphs with heavy tails of 2.9 and of 8 relationships a node: up to 5,000 nodes the exact solver is as fast,
# since its blocks stay in the cache; at 10,000 the other is 1.1 to 3 times as fast, at 500,000 about 25 times.
_LARGE = 10_000
_DENSE = 1 << 24  # cells of a dense block of scores, 128 MiB; the solver holds a few of that size


@operator("node.ppr", version=2)
def ppr(
    graph: Graph,
    seeds: Nodes,
    *,
    damping: float = 0.85,
    weighted: bool = True,
    top_k: int | None = None,
    solver: Literal["auto", "exact", "reduced"] = "auto",
    tolerance: float = 1e-5,
) -> Nodes:
    """Rank nodes by Personalised PageRank, restarting at the seeds in proportion to their scores.

    Args:
        graph: walked undirected, every kind of relationship, parallel ones merged.
        seeds: where the walk restarts; negative scores count as none.
        damping: the probability to follow an edge (0.5 in HippoRAG, 0.85 in FastGraphRAG).
        weighted: whether edge weights count.
        top_k: nodes to keep; null keeps every node the walk reaches.
        solver: ``exact`` to the tenth digit, ``reduced`` to the tolerance; ``auto`` is ``reduced`` where ``top_k`` is given
            and the graph has 10,000 nodes or more.
        tolerance: with ``reduced``, the most by which a question's scores, which sum to 1, may together be off.
    """
    check_tolerance(tolerance)
    n = graph.n_nodes
    if top_k is None and solver != "reduced":
        restart = np.maximum(seeds.dense(n), 0.0)
        return Nodes.of_dense(personalised_pagerank(graph.adjacency(weighted), restart, damping))
    few = seeds.csr(n)
    few.data = np.maximum(few.data, 0.0)
    if solver == "reduced" or (solver == "auto" and n >= _LARGE):
        return Nodes.of_rows(reduced_walk(graph, weighted, damping).rank(few, tolerance, top_k))
    rows: list[Row] = []
    block = max(32, _DENSE // max(n, 1))
    for start in range(0, len(seeds), block):
        restart = few[start : start + block].toarray()
        rows.extend(Nodes.of_dense(personalised_pagerank(graph.adjacency(weighted), restart, damping), top_k))
    return Nodes.of_rows(rows)
