"""From a way to divide one graph to a hierarchy: what is too large is divided again, level by level."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.simple import Edges
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import incidence

Part = tuple[int, NDArray[np.int64]]  # the parent, or -1, and the nodes by rising id


class Divide(Protocol):
    """Divides one undirected simple graph."""

    def __call__(self, nodes: int, edges: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return a label a node (any numbers), from (edges, 2) node positions and their positive weights."""
        ...


def divide_again(
    n_nodes: int,
    nodes: NDArray[np.int64],
    edges: Edges,
    divide: Divide,
    max_size: int,
    max_levels: int | None = None,
    alone: NDArray[np.int64] | None = None,
) -> Hierarchy:
    """Divide a graph, and each part that is larger than ``max_size`` by the edges within it, and so on.

    A level costs one sort of the edges that are still inside a community to be divided.

    Args:
        n_nodes: nodes of the graph.
        nodes: those that are to be divided, by rising id.
        edges: the undirected simple graph.
        divide: divides one graph.
        max_size: a community of at most so many nodes is left whole.
        max_levels: levels at most; None for as many as it takes.
        alone: nodes that get a community of their own at level 0.

    Returns:
        Communities numbered by level, within a level by their smallest node.
    """
    levels: list[list[Part]] = []
    todo: list[Part] = [(-1, nodes)] if len(nodes) else []
    left, right, weight = edges
    first = 0  # the id of the first community of the level being made
    while (todo or (not levels and alone is not None and len(alone))) and len(levels) != max_levels:
        group = np.full(n_nodes, -1, dtype=np.int64)
        place = np.zeros(n_nodes, dtype=np.int64)
        for number, (_, members) in enumerate(todo):
            group[members] = number
            place[members] = np.arange(len(members))
        inside = (group[left] == group[right]) & (group[left] >= 0)
        order = np.flatnonzero(inside)[np.argsort(group[left[inside]], kind="stable")]
        left, right, weight = left[order], right[order], weight[order]  # what runs across is never looked at again
        starts = np.searchsorted(group[left], np.arange(len(todo) + 1))
        found: list[Part] = []
        for number, (parent, members) in enumerate(todo):
            mine = slice(starts[number], starts[number + 1])
            ends = np.column_stack([place[left[mine]], place[right[mine]]])
            parts = _parts(members, divide(len(members), ends, weight[mine]))
            if len(parts) > 1 or parent < 0:
                found.extend((parent, part) for part in parts)
        if not levels and alone is not None:
            found.extend((-1, alone[at : at + 1]) for at in range(len(alone)))
        if not found:
            break
        found.sort(key=lambda part: int(part[1][0]))
        todo = [(first + at, part) for at, (_, part) in enumerate(found) if len(part) > max_size]
        first += len(found)
        levels.append(found)
    return _hierarchy(levels, n_nodes)


def _parts(members: NDArray[np.int64], labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return [members[part] for part in np.split(order, cuts)]


def _hierarchy(levels: list[list[Part]], n_nodes: int) -> Hierarchy:
    parts = [part for level in levels for part in level]
    sizes = np.array([len(nodes) for _, nodes in parts], dtype=np.int64)
    nodes = np.concatenate([nodes for _, nodes in parts]) if parts else np.empty(0, np.int64)
    return Hierarchy(
        level=np.repeat(np.arange(len(levels), dtype=np.int32), [len(level) for level in levels]),
        parent=np.array([parent for parent, _ in parts], dtype=np.int32),
        members=incidence(np.repeat(np.arange(len(parts)), sizes), nodes, (len(parts), n_nodes)),
    )
