"""CODICIL (Ruan, Fuhry and Parthasarathy, 2013): content edges, and of all edges those that say most."""

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.augmented import Augmented, common_neighbours, together
from graphrag_bench.community.layered import Layer
from graphrag_bench.community.simple import Edges
from graphrag_bench.errors import UserError
from graphrag_bench.index.neighbours import Search, nearest_neighbours, pair_cosines
from graphrag_bench.registry import register


@register("augmenter", "codicil")
def codicil(
    layer: Layer,
    *,
    content_neighbours: int = 50,
    alpha: float = 0.5,
    prune: bool = False,
    search: Search = "auto",
    seed: int = 0,
) -> Augmented:
    """Join every node to its nearest nodes, then keep the upper half of each node's neighbours.

    A neighbour's worth to a node is ``alpha`` times the Jaccard coefficient of their neighbours in the layer plus
    1 - ``alpha`` times the cosine of their vectors, each spread from 0 to 1 over the neighbours of that node. A pair stays
    if either end keeps it; half is rounded up, and ties go to the smaller id. Ruan et al. keep the best √d of d neighbours
    and drop what else the graph joined (``prune``); ArchRAG's comparison keeps half, and every edge of the graph.

    Args:
        layer: nodes with vectors, and the edges between them.
        content_neighbours: nearest nodes a node is joined to.
        alpha: weight of the topology.
        prune: whether an edge of the layer that neither end keeps is dropped.
        search: how the nearest are found; see ``nearest_neighbours``.
        seed: of a search that is not exact.

    Returns:
        The edges; those of the layer keep their weight, the new ones weigh the better of their two worths, at least 0.001.

    Raises:
        UserError: A setting is out of its range.
    """
    if content_neighbours < 1:
        raise UserError(f"community.content_neighbours is {content_neighbours}.", "Write 1 or more.")
    if not 0 <= alpha <= 1:
        raise UserError(f"community.alpha is {alpha}.", "Write a share from 0 to 1.")
    n = len(layer)
    found = nearest_neighbours(layer.vectors, content_neighbours, search, seed)
    node, place = np.nonzero(found.ids >= 0)
    union = together(layer.edges, node, found.ids[node, place], np.zeros(len(node)), n)
    left, right, _ = union
    ends = np.concatenate([left, right])
    others = np.concatenate([right, left])
    twice = np.concatenate([np.arange(len(left))] * 2)  # each pair is seen from both ends
    worth = alpha * _spread(ends, _jaccard(layer.edges, union, n)[twice])
    worth += (1 - alpha) * _spread(ends, pair_cosines(layer.vectors, left, right)[twice])
    worth = worth.round(12)
    order = np.lexsort((others, -worth, ends))
    at = ends[order]
    first, last = np.searchsorted(at, at), np.searchsorted(at, at, side="right")
    kept = np.zeros(len(left), dtype=bool)
    kept[twice[order[np.arange(len(order)) - first < (last - first + 1) // 2]]] = True
    best = np.maximum(worth[: len(left)], worth[len(left) :])
    edges = left[kept], right[kept], np.maximum(best[kept], 1e-3)
    edges = _with_weights(edges, layer.edges, n) if prune else together(layer.edges, *edges, n)
    return Augmented(edges, {"search": found.search, "content_pairs": len(left) - len(layer.edges[0])})


def _spread(ends: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spread values from 0 to 1 over each node's neighbours; 0 where all are equal."""
    size = int(ends.max(initial=-1)) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, ends, values)
    np.maximum.at(high, ends, values)
    width = (high - low)[ends]
    spread: NDArray[np.float64] = np.divide(values - low[ends], width, out=np.zeros(len(values)), where=width > 0)
    return spread


def _jaccard(edges: Edges, pairs: Edges, nodes: int) -> NDArray[np.float64]:
    """Return the Jaccard coefficient of the neighbours of both ends of each pair; 0 where neither has any."""
    left, right, _ = pairs
    common = common_neighbours(edges, left, right, nodes)
    degree = np.bincount(np.concatenate(edges[:2]), minlength=nodes)
    union = degree[left] + degree[right] - common
    share: NDArray[np.float64] = np.divide(common, union, out=np.zeros(len(left)), where=union > 0)
    return share


def _with_weights(edges: Edges, known: Edges, nodes: int) -> Edges:
    """Return the edges, those that are among the known with the weight they have there."""
    left, right, weight = together(known, *edges, nodes)
    chosen = np.isin(left * np.int64(nodes) + right, edges[0] * np.int64(nodes) + edges[1])
    return left[chosen], right[chosen], weight[chosen]
