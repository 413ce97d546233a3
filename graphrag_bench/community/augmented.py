"""What augmentations are made of: lists of pairs put in order, and what they may say of themselves."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.community.simple import Edges

_LOOKUPS = 1 << 22  # neighbours looked up at a time


class Augmented(NamedTuple):
    """The edges of an augmentation that has something to say of how they were found.

    Attributes:
        edges: the edges to cluster, in the form of a layer's.
        facts: for the artifact, by layer.
    """

    edges: Edges
    facts: Mapping[str, Any]


def pair_keys(left: NDArray[np.int64], right: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Return one number for each pair of nodes, whichever end stands first; the order of the numbers is that of edges."""
    return np.minimum(left, right) * np.int64(max(nodes, 1)) + np.maximum(left, right)


def new_pairs(left: NDArray[np.int64], right: NDArray[np.int64], edges: Edges, nodes: int) -> NDArray[np.bool_]:
    """Mark the pairs that no edge joins."""
    found: NDArray[np.bool_] = ~np.isin(pair_keys(left, right, nodes), pair_keys(edges[0], edges[1], nodes))
    return found


def together(
    edges: Edges, left: NDArray[np.int64], right: NDArray[np.int64], weight: NDArray[np.float64], nodes: int
) -> Edges:
    """Return edges and further pairs as one list of edges; a pair that comes twice keeps its first weight."""
    keys = np.concatenate([pair_keys(edges[0], edges[1], nodes), pair_keys(left, right, nodes)])
    distinct, first = np.unique(keys, return_index=True)
    smaller, larger = np.divmod(distinct, np.int64(max(nodes, 1)))
    return smaller, larger, np.concatenate([edges[2], weight])[first]


def common_neighbours(edges: Edges, left: NDArray[np.int64], right: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Return how many neighbours the two ends of each pair share.

    The neighbours of the end that has fewer are looked up among those of the other, so a hub costs no more than its leaves.
    """
    adjacency = symmetric(edges, nodes)
    degree = np.diff(adjacency.indptr)
    keys = np.repeat(np.arange(nodes), degree) * np.int64(max(nodes, 1)) + adjacency.indices  # rising
    swap = degree[left] > degree[right]
    few, many = np.where(swap, right, left), np.where(swap, left, right)
    upto = np.concatenate([[0], np.cumsum(degree[few])])
    common = np.zeros(len(left), dtype=np.int64)
    start = 0
    while start < len(left):
        stop = max(start + 1, int(np.searchsorted(upto, upto[start] + _LOOKUPS, side="right")) - 1)
        count = degree[few[start:stop]]
        pair = np.repeat(np.arange(start, stop), count)
        within = np.arange(len(pair)) - (upto[pair] - upto[start])
        wanted = many[pair] * np.int64(nodes) + adjacency.indices[adjacency.indptr[few[pair]] + within]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        common[start:stop] = np.bincount(pair[keys[at] == wanted] - start, minlength=stop - start) if len(pair) else 0
        start = stop
    return common


def symmetric(edges: Edges, nodes: int) -> sparse.csr_array:
    """Return the (nodes, nodes) matrix of the weights, both ways, with sorted indices."""
    left, right, weight = edges
    ends = (np.concatenate([left, right]), np.concatenate([right, left]))
    matrix = sparse.coo_array((np.concatenate([weight, weight]), ends), shape=(nodes, nodes)).tocsr()
    matrix.sort_indices()
    return sparse.csr_array(matrix)
