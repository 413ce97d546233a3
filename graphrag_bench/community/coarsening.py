"""From one layer of communities to the next: numbers, edges, vectors, and the hierarchy of all layers so far."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.community.simple import Edges
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import Graph, incidence

Labels = NDArray[np.int64]


def renumbered(labels: Labels) -> Labels:
    """Return the labels as 0, 1, … by the first node that has each; nodes standing by their smallest entity, so do these."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.ravel()]


def fact_counts(graph: Graph, labels: Labels, communities: int) -> Edges:
    """Return what joins communities: the number of facts between their members, those without a positive weight left out.

    Args:
        graph: whose facts are counted, parallel ones each.
        labels: (nodes,) each node's community.
        communities: how many.
    """
    facts = graph.facts[graph.weights[graph.facts] > 0]
    a, b = labels[graph.sources[facts]], labels[graph.targets[facts]]
    width = np.int64(max(communities, 1))
    pair, count = np.unique(np.minimum(a, b)[a != b] * width + np.maximum(a, b)[a != b], return_counts=True)
    left, right = np.divmod(pair, width)
    return left, right, count.astype(np.float64)


def mean_vectors(vectors: NDArray[np.float32], labels: Labels, communities: int) -> NDArray[np.float32]:
    """Return the mean of each community's entities' vectors, at length 1; zeros where that is nothing.

    Args:
        vectors: (entities, width).
        labels: (entities,) each one's community.
        communities: how many.
    """
    order = np.argsort(labels, kind="stable")  # by community, so that sums are made in the order of ids
    starts = np.searchsorted(labels[order], np.arange(communities + 1))
    chosen = sparse.csr_array((np.ones(len(order), np.float32), order, starts), shape=(communities, len(labels)))
    sums = np.asarray(chosen @ vectors, dtype=np.float32)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    means: NDArray[np.float32] = np.divide(sums, length, out=np.zeros_like(sums), where=length > 1e-6)
    return means


def stacked(layers: Sequence[Labels], nodes: int) -> Hierarchy:
    """Return the hierarchy of layers of communities, the last layer at level 0.

    Args:
        layers: from the finest: (nodes,) each entity's community; then each community's community, and so on. Numbered
            as `renumbered` does.
        nodes: entities.

    Returns:
        Communities by level, within a level by their smallest entity, each with all the entities of those below it. Every
        entity is in one community of every level.
    """
    sizes = [int(labels.max(initial=-1)) + 1 for labels in layers]
    first = np.concatenate([[0], np.cumsum(sizes[::-1])])[:-1][::-1]  # the id of each layer's first community
    level = [np.full(size, len(layers) - 1 - number, np.int32) for number, size in enumerate(sizes)]
    parent = [
        (layers[number + 1] + first[number + 1]).astype(np.int32)
        if number + 1 < len(layers)
        else np.full(size, -1, np.int32)
        for number, size in enumerate(sizes)
    ]
    rows: list[Labels] = []
    of_entity = np.arange(nodes)
    for number, labels in enumerate(layers):
        of_entity = labels[of_entity]
        rows.append(of_entity + first[number])
    empty = np.empty(0, np.int64)
    return Hierarchy(
        level=np.concatenate([np.empty(0, np.int32), *level[::-1]]),
        parent=np.concatenate([np.empty(0, np.int32), *parent[::-1]]),
        members=incidence(
            np.concatenate([empty, *rows]), np.tile(np.arange(nodes), len(layers)).astype(np.int64), (sum(sizes), nodes)
        ),
    )
