"""The undirected simple view of some kinds of relationship, as a list of pairs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph

Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # one end, the other, the weight


def simple_edges(graph: Graph, kinds: Sequence[str] = ("fact",)) -> Edges:
    """Return what joins two nodes: smaller node, larger node, summed weight; by the nodes, each pair once.

    Loops join nothing, nor do relationships whose weight is not positive.
    """
    chosen = graph.of_kinds(kinds)
    a, b, weight = graph.sources[chosen], graph.targets[chosen], graph.weights[chosen]
    keep = (a != b) & (weight > 0)
    width = np.int64(max(graph.n_nodes, 1))
    pair = np.minimum(a, b)[keep] * width + np.maximum(a, b)[keep]
    distinct, position = np.unique(pair, return_inverse=True)
    summed: NDArray[np.float64] = np.bincount(position.ravel(), weights=weight[keep], minlength=len(distinct)).astype(
        np.float64
    )
    left, right = np.divmod(distinct, width)
    return left, right, summed
