"""Leiden on the weighted edges of a layer; what is too large is divided again, and the smallest parts count."""

from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.division import Divide, divide_again
from graphrag_bench.community.engines import with_igraph, with_leidenalg
from graphrag_bench.community.layered import Layer
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_ENGINES = {"igraph": with_igraph, "leidenalg": with_leidenalg}


@register("partitioner", "leiden")
def leiden(
    layer: Layer,
    *,
    max_size: int = 15,
    resolution: float = 1.0,
    engine: Literal["igraph", "leidenalg"] = "igraph",
    iterations: int = 10,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Divide by Leiden on weighted modularity, again inside each part larger than ``max_size``; the last parts are taken.

    These are the final clusters of graspologic's hierarchical Leiden, which ArchRAG uses. A part that modularity does not
    divide stays whole, however large. A node without an edge is alone.

    Args:
        layer: its edges are the augmented and weighted ones.
        max_size: a part of at most so many nodes is left whole (ArchRAG: 15).
        resolution: of modularity; higher gives more and smaller communities.
        engine: igraph, or leidenalg: the same objective, another implementation.
        iterations: passes of Leiden at most; -1 for as many as still improve.
        seed: of the random order in which Leiden visits nodes.

    Raises:
        UserError: A setting is out of its range.
    """
    for name, value, fits, wanted in (
        ("max_size", max_size, max_size >= 1, "1 or more"),
        ("resolution", resolution, 0 < resolution < inf, "a number above 0"),
        ("iterations", iterations, iterations == -1 or iterations >= 1, "1 or more, or -1"),
    ):
        if not fits:
            raise UserError(f"community.{name} is {value}.", f"Write {wanted}.")
    left, right, _ = layer.edges
    joined = np.zeros(len(layer), dtype=bool)
    joined[left] = joined[right] = True
    divide: Divide = _ENGINES[engine](resolution, iterations, seed)
    found = divide_again(len(layer), np.flatnonzero(joined), layer.edges, divide, max_size)
    labels = np.arange(len(layer)) + len(found)  # a node without an edge keeps this one
    leaves = found.members[np.flatnonzero(found.is_leaf)] if len(found) else found.members
    labels[leaves.indices] = np.repeat(np.arange(leaves.shape[0]), np.diff(leaves.indptr))
    return labels
