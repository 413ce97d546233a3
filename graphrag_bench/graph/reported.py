"""What reports say of the communities as arrays: who has one, and how it is rated."""

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph


def reported(graph: Graph, max_level: int | None = None) -> NDArray[np.bool_]:
    """Say of each community whether it has a report and stands at ``max_level`` or above it (0 is the coarsest)."""
    there = np.full(graph.n_communities, graph.reports is not None)
    if graph.reports is not None:
        there[list(graph.reports.failed)] = False
    return there if max_level is None else there & (graph.communities.level <= max_level)


def ratings(graph: Graph) -> NDArray[np.float64]:
    """Return each community's rating, minus infinity where its report has none: an order in which such stand last."""
    if graph.reports is None:
        return np.full(graph.n_communities, -np.inf)
    return np.nan_to_num(graph.reports.ratings, nan=-np.inf)
