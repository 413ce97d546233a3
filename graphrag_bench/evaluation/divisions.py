"""A division of a graph's nodes into communities, as the metrics of community quality see it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.simple import Edges
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import Hierarchy

Floats = NDArray[np.float64]
_BLOCK = 1 << 24  # numbers turned to double precision at a time: 128 MiB


@dataclass(frozen=True, eq=False)
class Division:
    """Which node is in which community, at one level of a hierarchy.

    Attributes:
        vectors: (nodes, width) the nodes' vectors.
        labels: (nodes,) each node's community, from 0 without a gap; -1 for a node in none.
        edges: what joins two nodes: smaller node, larger node, positive weight; each pair once.
    """

    vectors: NDArray[np.float32]
    labels: NDArray[np.int64]
    edges: Edges

    @property
    def n_nodes(self) -> int:
        """Nodes, those in no community too."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(communities,) how many nodes each has."""
        return np.bincount(self.labels[self.labels >= 0]).astype(np.int64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """(clustered nodes,) the nodes in a community, by community, then by node."""
        by_label = np.argsort(self.labels, kind="stable")
        return by_label[self.n_nodes - int(self.sizes.sum()) :]

    @cached_property
    def means(self) -> Floats:
        """(communities, width) the mean vector of each community."""
        sums = np.zeros((len(self.sizes), self.vectors.shape[1]))
        for nodes, block in self.blocks():
            firsts, at = _runs(self.labels[nodes])
            sums[at] += np.add.reduceat(block, firsts, axis=0)
        return sums / self.sizes[:, None]

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """Yield the nodes in a community, in `order`, with their vectors in double precision."""
        step = max(1, _BLOCK // max(self.vectors.shape[1], 1))
        for start in range(0, len(self.order), step):
            nodes = self.order[start : start + step]
            yield nodes, self.vectors[nodes].astype(np.float64)

    def by_community(self, values: Floats) -> Floats:
        """Return the sum of values over each community.

        Args:
            values: (clustered nodes,) in `order`.
        """
        return np.bincount(self.labels[self.order], weights=values, minlength=len(self.sizes)).astype(np.float64)


def _runs(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each run of equal labels begins, and the label of each."""
    firsts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    return firsts, labels[firsts]


def divide(hierarchy: Hierarchy, level: int, vectors: NDArray[np.float32], edges: Edges) -> Division:
    """Return what a hierarchy makes of the nodes at a level: communities above that were not divided are in it too.

    Args:
        hierarchy: the communities.
        level: from 0, the coarsest.
        vectors: (nodes, width) the nodes' vectors.
        edges: the undirected simple graph.

    Raises:
        UserError: a node is in two communities of the level.
    """
    chosen = hierarchy.at(level)
    members = hierarchy.members[chosen].tocoo()
    nodes, numbers = members.coords[1], members.coords[0]
    count = np.bincount(nodes, minlength=hierarchy.members.shape[1])
    if np.any(count > 1):
        raise UserError(
            f"At level {level} {int(np.sum(count > 1))} nodes are in several communities, and the metrics of community "
            "quality compare communities without a node in common.",
            "Choose a clusterer (community=leiden), or write evaluation.communities=[].",
        )
    labels = np.full(hierarchy.members.shape[1], -1, dtype=np.int64)
    labels[nodes] = np.unique(numbers, return_inverse=True)[1]
    return Division(vectors, labels, edges)
