"""SCAN (Xu, Yuruk, Feng and Schweiger, 2007): nodes that share their neighbours belong together."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from graphrag_bench.community.augmented import common_neighbours
from graphrag_bench.community.layered import Layer
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

Labels = NDArray[np.int64]
Ends = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # a node, its neighbour, their similarity


@register("partitioner", "scan")
def scan(
    layer: Layer, *, epsilon: float = 0.5, mu: int = 2, unclustered: Literal["nearest", "own"] = "nearest"
) -> Labels:
    """Divide by structural similarity; the edges' weights play no part in it, only which edges there are.

    Two joined nodes are as similar as the neighbours they share, themselves included, over the geometric mean of the
    numbers they have. A core has ``mu`` nodes or more, itself included, at least ``epsilon`` similar; cores that are so
    similar to each other, and what is so similar to a core, are a cluster. A node similar to cores of several clusters goes
    with the most similar of them, ties to the smaller id, which the paper leaves to chance.

    Args:
        layer: its edges are the augmented ones.
        epsilon: least similarity (the paper: 0.5 to 0.8).
        mu: least nodes a core needs (the paper: 2).
        unclustered: what becomes of hubs and outliers: the cluster of the most similar neighbour that has one, and so on
            outwards, alone where there is none; or always alone.

    Raises:
        UserError: A setting is out of its range.
    """
    if not 0 < epsilon <= 1:
        raise UserError(f"community.epsilon is {epsilon}.", "Write a number above 0 and at most 1.")
    if mu < 1:
        raise UserError(f"community.mu is {mu}.", "Write 1 or more.")
    n = len(layer)
    ends = structural_similarity(layer)
    node, other, similarity = ends
    strong = similarity >= epsilon
    core = np.bincount(node[strong], minlength=n) + 1 >= mu
    between = strong & core[node] & core[other]
    links = csr_array((np.ones(int(between.sum())), (node[between], other[between])), shape=(n, n))
    component = connected_components(links, directed=False)[1]
    labels = np.where(core, component, -1).astype(np.int64)
    border = strong & core[other]
    labels = _follow(labels, (node[border], other[border], similarity[border]))
    while unclustered == "nearest":
        grown = _follow(labels, ends)
        if np.array_equal(grown, labels):
            break
        labels = grown
    alone = labels < 0
    labels[alone] = n + np.flatnonzero(alone)
    return labels


def structural_similarity(layer: Layer) -> Ends:
    """Return the ends of each edge, both ways, and their structural similarity."""
    n = len(layer)
    left, right, _ = layer.edges
    size = np.bincount(np.concatenate([left, right]), minlength=n) + 1
    common = common_neighbours(layer.edges, left, right, n) + 2  # of two joined nodes each is its own and the other's
    similarity = (common / np.sqrt(size[left] * size[right])).round(12)
    return np.concatenate([left, right]), np.concatenate([right, left]), np.concatenate([similarity, similarity])


def _follow(labels: Labels, ends: Ends) -> Labels:
    """Give each node without a label that of its most similar neighbour that has one."""
    node, other, similarity = ends
    open_ = np.flatnonzero((labels[node] < 0) & (labels[other] >= 0))
    order = open_[np.lexsort((other[open_], -similarity[open_], node[open_]))]
    nodes, first = np.unique(node[order], return_index=True)
    grown = labels.copy()
    grown[nodes] = labels[other[order[first]]]
    return grown
