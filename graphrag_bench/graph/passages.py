"""Passages as nodes: the graph of entities and chunks together, each chunk joined to the entities that occur in it."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.graph.graph import Graph, Incidence


def with_passages(graph: Graph, weighted: bool = True, edge: float = 1.0) -> Incidence:
    """Return the undirected simple view with a node a chunk behind the graph's own nodes.

    It is a view, as `Graph.adjacency` is: what a chunk is joined to is the incidence every graph carries, so any graph can
    be walked through its passages and none needs nodes that are no entities (source: HippoRAG 2, whose graph stores them).

    Args:
        graph: the graph.
        weighted: whether the weights of relationships count.
        edge: what the edge between a passage and an entity weighs; 0 leaves the passages alone.

    Returns:
        A symmetric (nodes + chunks, nodes + chunks) matrix; chunk c is node ``graph.n_nodes + c``.
    """
    cache: dict[tuple[bool, float], Incidence] = graph.__dict__.setdefault("_with_passages", {})
    if (weighted, edge) not in cache:
        own = graph.adjacency(weighted)
        held = (graph.node_chunk.astype(np.float64) * edge).tocsr()
        none = sparse.csr_array((graph.n_chunks, graph.n_chunks), dtype=np.float64)
        whole = sparse.block_array([[own, held], [held.T, none]], format="csr")
        whole.eliminate_zeros()
        whole.sort_indices()
        cache[weighted, edge] = whole
    return cache[weighted, edge]


def unit_range(scores: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return scores brought to 0 … 1 by the lowest and highest there are; 1 where these are one (HippoRAG's min-max)."""
    if high <= low:
        return np.ones_like(scores)
    scaled: NDArray[np.float64] = (scores - low) / (high - low)
    return scaled
