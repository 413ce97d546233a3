"""The quality of a graph's communities, level by level: sizes, and whichever registered metrics are asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.simple import simple_edges
from graphrag_bench.evaluation.catalogue import PREFIX, chosen_metrics
from graphrag_bench.evaluation.divisions import Division, divide
from graphrag_bench.graph.graph import Graph
from graphrag_bench.registry import Component

_DIGITS = 6


@dataclass(frozen=True)
class CommunityQuality:
    """What was found, the coarsest level first.

    Attributes:
        nodes: of the graph.
        sizes: a level's numbers of communities and of their nodes.
        metrics: a level's values; None where a metric is not defined, as for a single community.
    """

    nodes: int
    sizes: tuple[Mapping[str, Any], ...]
    metrics: tuple[Mapping[str, float | None], ...]

    def cell_metrics(self) -> dict[str, dict[str, Any]]:
        """Return the finest level's values, named and shaped as a cell's metrics are."""
        finest = self.metrics[-1] if self.metrics else {}
        return {f"{PREFIX}{name}": {"value": value, "n": None, "ci": None} for name, value in finest.items()}

    def to_json(self) -> dict[str, Any]:
        """Return every level, ready for ``json.dumps``."""
        pairs = zip(self.sizes, self.metrics, strict=True)
        levels = [
            {"level": at, "sizes": dict(sizes), "metrics": dict(found)} for at, (sizes, found) in enumerate(pairs)
        ]
        return {"nodes": self.nodes, "finest": len(levels) - 1 if levels else None, "levels": levels}


def community_quality(
    graph: Graph, vectors: NDArray[np.float32], names: Sequence[str], *, seed: int = 0
) -> CommunityQuality:
    """Measure the communities of a graph at every level.

    Args:
        graph: with its communities.
        vectors: (nodes, width) the vectors of its nodes, as its node index has them.
        names: of registered metrics.
        seed: for metrics that draw a sample.

    Raises:
        UserError: a name is unknown, or the communities of a level share nodes.
    """
    metrics = chosen_metrics(names)
    hierarchy = graph.communities
    edges = simple_edges(graph)
    sizes, found = [], []
    for level in range(int(hierarchy.level.max(initial=-1)) + 1):
        division = divide(hierarchy, level, vectors, edges)
        sizes.append(size_distribution(division))
        found.append({metric.name: _value(metric, division, seed) for metric in metrics})
    return CommunityQuality(graph.n_nodes, tuple(sizes), tuple(found))


def size_distribution(division: Division) -> dict[str, Any]:
    """Return how many communities there are and how large they are."""
    sizes = division.sizes
    return {
        "communities": len(sizes),
        "nodes": int(sizes.sum()),
        "median": float(np.median(sizes)) if len(sizes) else None,
        "mean": round(float(sizes.mean()), _DIGITS) if len(sizes) else None,
        "largest": int(sizes.max(initial=0)),
        "singletons": int(np.sum(sizes == 1)),
        "share_in_largest": round(float(sizes.max() / sizes.sum()), _DIGITS) if len(sizes) else None,
    }


def _value(metric: Component, division: Division, seed: int) -> float | None:
    value = metric.call(division, **({"seed": seed} if "seed" in metric.settings else {}))
    return None if value is None else round(float(value), _DIGITS)
