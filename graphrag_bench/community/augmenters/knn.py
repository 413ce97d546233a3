"""Nearest neighbours: nodes whose vectors are near are joined (ArchRAG, Algorithm 1)."""

import numpy as np

from graphrag_bench.community.augmented import Augmented, new_pairs, together
from graphrag_bench.community.layered import Layer
from graphrag_bench.errors import UserError
from graphrag_bench.index.neighbours import Search, nearest_neighbours, pair_cosines
from graphrag_bench.registry import register


@register("augmenter", "knn")
def knn(
    layer: Layer, *, neighbours: int | None = None, quantile: float = 0.7, search: Search = "auto", seed: int = 0
) -> Augmented:
    """Join every node to the nearest nodes it is not joined to yet, where they are nearer than most that are joined.

    Of a node's ⌊1.5 k⌋ nearest others (the breadth of ArchRAG's code) those are taken that no edge joins to it and whose
    cosine is above the threshold, at most ``neighbours``, nearest first, ties by id. The threshold is a quantile of the
    cosines of the layer's own edges, and 0 where the layer has none.

    Args:
        layer: nodes with vectors, and the edges between them.
        neighbours: k; null for the mean degree of the nodes that have an edge, rounded down, at least 1.
        quantile: of the cosines of the layer's edges, the threshold (ArchRAG: 0.7).
        search: how the nearest are found; see ``nearest_neighbours``.
        seed: of a search that is not exact.

    Returns:
        The layer's edges with their weights and the new ones, which weigh their cosine, at least 0.001.

    Raises:
        UserError: A setting is out of its range.
    """
    if neighbours is not None and neighbours < 1:
        raise UserError(f"community.neighbours is {neighbours}.", "Write 1 or more, or null for the mean degree.")
    if not 0 <= quantile <= 1:
        raise UserError(f"community.quantile is {quantile}.", "Write a share from 0 to 1.")
    left, right, _ = layer.edges
    n = len(layer)
    if neighbours is None:
        joined = len(np.unique(np.concatenate([left, right])))
        neighbours = max(1, 2 * len(left) // max(joined, 1))
    threshold = float(np.quantile(pair_cosines(layer.vectors, left, right), quantile)) if len(left) else 0.0
    found = nearest_neighbours(layer.vectors, 3 * neighbours // 2, search, seed)
    node, place = np.nonzero((found.ids >= 0) & (found.cosines > threshold))  # by node, nearest first
    near, cosine = found.ids[node, place], found.cosines[node, place]
    fresh = new_pairs(node, near, layer.edges, n)
    node, near, cosine = node[fresh], near[fresh], cosine[fresh]
    few = np.arange(len(node)) - np.searchsorted(node, node) < neighbours
    edges = together(layer.edges, node[few], near[few], np.maximum(cosine[few], 1e-3), n)
    return Augmented(edges, {"neighbours": neighbours, "threshold": round(threshold, 6), "search": found.search})
