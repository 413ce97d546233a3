"""Shortest paths between few nodes of a big graph: searches from both ends that stop half-way.

Two nodes are L apart if a node that is ⌈L/2⌉ from the one is ⌊L/2⌋ from the other and no smaller L does it, so a search
from each of the given nodes need only go half of the hops allowed. The searches grow together, a hop at a time.
"""

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, distinct, gather, incident, neighbours

Ids = NDArray[np.int64]


class Ball:
    """The nodes around one node by their distance; grows on demand."""

    def __init__(self, walker: "Walker", centre: int) -> None:
        self._walker = walker
        self.distance: NDArray[np.signedinteger[Any]] = np.full(walker.n_nodes, -1, dtype=np.int8)
        self.distance[centre] = 0
        self.levels: list[Ids] = [np.array([centre], dtype=np.int64)]

    def grow(self, radius: int) -> None:
        """Search until ``radius`` hops are known."""
        while len(self.levels) <= radius:
            if len(self.levels) > np.iinfo(self.distance.dtype).max:  # a byte a node is enough for nearly every graph
                self.distance = self.distance.astype(np.int32)
            found = self._walker.beside(self.levels[-1])
            found = distinct(found[self.distance[found] < 0], self._walker.n_nodes)
            self.distance[found] = len(self.levels)
            self.levels.append(found)


class Pair(NamedTuple):
    """Two nodes and, hop by hop from the one to the other, the nodes that lie on any shortest path between them."""

    one: int
    two: int
    levels: tuple[Ids, ...]


class Walker:
    """Walks a graph over relationships of some kinds, in both directions; the undirected simple view decides what is near."""

    def __init__(self, graph: Graph, kinds: Kinds = FACTS) -> None:
        self.n_nodes = graph.n_nodes
        self._around, self._touching = neighbours(graph, kinds), incident(graph, kinds)
        self._weights, self._sources = graph.weights, graph.sources

    def beside(self, nodes: Ids) -> Ids:
        """Return the neighbours of some nodes, one's after the other's."""
        found: Ids = self._around.nodes[gather(self._around.indptr, nodes)[1]]
        return found

    def within(self, centres: Ids, hops: int) -> Ids:
        """Return the nodes that are at most so many hops from any of some nodes, by rising id."""
        seen = np.zeros(self.n_nodes, dtype=bool)
        seen[centres] = True
        last = centres
        for _ in range(hops):
            found = self.beside(last)
            last = distinct(found[~seen[found]], self.n_nodes)
            if not len(last):
                break
            seen[last] = True
        return np.flatnonzero(seen)

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """The connected component of each node."""
        around = self._around
        shape = (self.n_nodes, self.n_nodes)
        matrix = sparse.csr_array((np.ones(len(around.nodes), np.int8), around.nodes, around.indptr), shape=shape)
        labels: NDArray[np.int32] = csgraph.connected_components(matrix, directed=False)[1]
        return labels

    def meeting(self, centres: Ids) -> int:
        """Return the smallest radius at which the balls around any two of some nodes of one component share a node."""
        apart = {
            (one, two)
            for one, two in combinations(range(len(centres)), 2)
            if self.components[centres[one]] == self.components[centres[two]]
        }
        balls = [Ball(self, int(node)) for node in centres]
        radius = 0
        while apart:
            radius += 1
            for ball in balls:
                ball.grow(radius)
            apart = {(one, two) for one, two in apart if not _touch(balls[one], balls[two])}
        return radius

    def pairs(self, left: Collection[int], hops: int) -> Iterator[Pair]:
        """Give pairs of nodes that are at most ``hops`` apart, the nearest first, then by their ids.

        Args:
            left: the nodes; those taken out while the pairs are read are in no further pair.
            hops: relationships between them at most.
        """
        balls = {node: Ball(self, node) for node in sorted(left)}
        for apart in range(1, hops + 1):
            far, near = (apart + 1) // 2, apart // 2
            for node in left:
                balls[node].grow(far)
            for one, two in combinations(sorted(left), 2):
                if one in left and two in left and len(middle := _between(balls[one], balls[two], far, near)):
                    yield Pair(one, two, self._levels(balls[one], balls[two], middle, far, near))
            if len(left) < 2:
                return

    def _levels(self, one: Ball, two: Ball, middle: Ids, far: int, near: int) -> tuple[Ids, ...]:
        levels = [middle]
        for hop in reversed(range(far)):
            before = self.beside(levels[0])
            levels.insert(0, distinct(before[one.distance[before] == hop], self.n_nodes))
        for hop in reversed(range(near)):
            after = self.beside(levels[-1])
            levels.append(distinct(after[two.distance[after] == hop], self.n_nodes))
        return tuple(levels)

    def walks(self, pair: Pair) -> Iterator[tuple[int, ...]]:
        """Give the shortest paths between two nodes as their nodes, by rising ids."""
        yield from self._onwards((pair.one,), pair.levels)

    def _onwards(self, walk: tuple[int, ...], levels: tuple[Ids, ...]) -> Iterator[tuple[int, ...]]:
        if len(walk) == len(levels):
            yield walk
            return
        # every node of a level has a neighbour in the next one, so no walk ends before its time
        for node in np.intersect1d(self.beside(np.array(walk[-1:])), levels[len(walk)], assume_unique=True).tolist():
            yield from self._onwards((*walk, node), levels)

    def step(self, start: int, end: int) -> tuple[int, int]:
        """Return the relationship that joins two neighbours, the heaviest, then the smallest id, and its direction."""
        indptr = self._touching.indptr
        swap = indptr[start + 1] - indptr[start] > indptr[end + 1] - indptr[end]
        here, there = (end, start) if swap else (start, end)
        part = slice(int(indptr[here]), int(indptr[here + 1]))
        ids = self._touching.relationships[part][self._touching.others[part] == there]
        best = int(ids[np.argmax(self._weights[ids])])  # of equals the first, and ids rise
        return best, 1 if self._sources[best] == start else -1


def _touch(one: Ball, two: Ball) -> bool:
    """Say whether two balls of one radius share a node, which they then do at the rim of one of them."""
    return bool((two.distance[one.levels[-1]] >= 0).any() or (one.distance[two.levels[-1]] >= 0).any())


def _between(one: Ball, two: Ball, far: int, near: int) -> Ids:
    """Return the nodes ``far`` from the one and ``near`` to the other, by rising id."""
    from_one = len(one.levels[far]) <= len(two.levels[near])
    candidates: Ids = one.levels[far] if from_one else two.levels[near]
    there = two.distance[candidates] == near if from_one else one.distance[candidates] == far
    return np.asarray(candidates[there], dtype=np.int64)
