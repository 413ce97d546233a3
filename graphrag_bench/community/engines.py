"""The two implementations of Leiden behind one signature: edges and weights in, a label a node out."""

import random
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.division import Divide

_IGRAPH = Lock()  # igraph draws from one generator a process, and cells of a run share the process


def with_igraph(resolution: float, iterations: int, seed: int) -> Divide:
    """Return Leiden by igraph, on modularity.

    igraph draws random numbers from one generator of the process. It is ours, freshly seeded, during a call, and Python's
    ``random`` (igraph's own default) after it, so a result does not depend on what ran before, nor does a call move it on.
    """
    import igraph

    def divide(nodes: int, edges: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        graph = igraph.Graph(n=nodes, edges=edges)
        with _IGRAPH:
            igraph.set_random_number_generator(random.Random(seed))
            try:
                found = graph.community_leiden(
                    "modularity", weights=weights.tolist(), resolution=resolution, n_iterations=iterations
                )
            finally:
                igraph.set_random_number_generator(random)
        return np.asarray(found.membership, dtype=np.int64)

    return divide


def with_leidenalg(resolution: float, iterations: int, seed: int) -> Divide:
    """Return Leiden by leidenalg, whose generator is its own; its configuration model is modularity with a resolution."""
    import igraph
    import leidenalg

    def divide(nodes: int, edges: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
        graph = igraph.Graph(n=nodes, edges=edges)
        kind: Any = leidenalg.RBConfigurationVertexPartition
        found = leidenalg.find_partition(
            graph, kind, weights=weights.tolist(), n_iterations=iterations, seed=seed, resolution_parameter=resolution
        )
        return np.asarray(found.membership, dtype=np.int64)

    return divide
