"""How a layer's nodes are clustered: RAPTOR's two steps, k-means, and the bound on a cluster's tokens."""

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.tree.mixture import Mixture, Positions
from graphrag_bench.graph.tree.projection import Reduction, project

Step = Callable[[NDArray[Any]], list[Positions]]  # unit vectors of some nodes -> the positions in each cluster

_LOCAL_NEIGHBOURS = 10  # RAPTOR's
# numba's simplest threading layer ends the process when two threads use it at once, and a limit on threads is the process's
_ALONE = threading.Lock()


@dataclass(frozen=True)
class GlobalThenLocal:
    """RAPTOR's clustering: a mixture over a projection of all nodes, then one inside each of its clusters.

    Attributes:
        mixture: how mixtures are fitted.
        reduction: how vectors are projected.
        dimensions: dimensions to project to; so many nodes and one more are never divided.
        seed: UMAP's.
    """

    mixture: Mixture
    reduction: Reduction = "umap"
    dimensions: int = 10
    seed: int = 224

    def __call__(self, vectors: NDArray[Any]) -> list[Positions]:
        """Return the positions of the nodes of each local cluster."""
        found: list[Positions] = []
        for members in self._divide(vectors, isqrt(max(len(vectors) - 1, 0))):
            found.extend(members[part] for part in self._divide(vectors[members], _LOCAL_NEIGHBOURS))
        return found

    def _divide(self, vectors: NDArray[Any], neighbours: int) -> list[Positions]:
        if len(vectors) <= self.dimensions + 1:
            return [np.arange(len(vectors))]
        points = project(vectors, self.reduction, dimensions=self.dimensions, neighbours=neighbours, seed=self.seed)
        return self.mixture.clusters(points)


@dataclass(frozen=True)
class KMeansOf:
    """Seeded k-means++ into ⌈n / ``cluster_size``⌉ clusters (RAPTOR-K)."""

    cluster_size: int = 10
    seed: int = 224

    def __call__(self, vectors: NDArray[Any]) -> list[Positions]:
        """Return the positions of the nodes of each cluster; fewer where vectors are equal."""
        from sklearn.cluster import KMeans

        count = -(-len(vectors) // self.cluster_size)
        if count < 2:
            return [np.arange(len(vectors))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct vectors than clusters
            model = KMeans(count, init="k-means++", n_init=1, random_state=self.seed, algorithm="lloyd")
            labels = model.fit_predict(np.asarray(vectors, dtype=np.float64))
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def partition(
    step: Step, vectors: NDArray[Any], tokens: Sequence[int], max_tokens: int | None, max_depth: int
) -> list[tuple[int, ...]]:
    """Return the clusters of a layer: sorted tuples of positions, each once, in order.

    A cluster of two or more nodes whose texts pass ``max_tokens`` is clustered again, at most ``max_depth`` times in each
    other. One that is too big then, or that clustering does not divide, is packed: the first node left takes the nodes
    nearest to it by cosine, of equals the first, until the next would pass the bound. A node longer than the bound
    is a cluster of its own.

    Args:
        step: one clustering.
        vectors: (n, d) unit vectors.
        tokens: tokens of each node's text.
        max_tokens: the bound; None for none.
        max_depth: how often a cluster is clustered again.
    """
    sizes = np.asarray(tokens, dtype=np.int64)
    found: set[tuple[int, ...]] = set()

    def take(members: Positions, depth: int) -> None:
        for part in step(vectors[members]):
            cluster = members[part]
            if len(cluster) < 2 or max_tokens is None or sizes[cluster].sum() <= max_tokens:
                found.add(tuple(cluster.tolist()))
            elif len(cluster) < len(members) and depth < max_depth:
                take(cluster, depth + 1)
            else:
                found.update(pack(cluster, vectors, sizes, max_tokens))

    import sklearn.cluster
    import sklearn.mixture  # noqa: F401  # a limit reaches only the libraries that are loaded
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    # one thread: the many small products run several times faster, and sums do not hang on the number of cores
    with _ALONE, threadpool_limits(1):
        take(np.arange(len(vectors)), 0)
    return sorted(found)


def pack(cluster: Positions, vectors: NDArray[Any], sizes: NDArray[np.int64], max_tokens: int) -> list[tuple[int, ...]]:
    """Divide a cluster by the rule of `partition`."""
    left = cluster
    packs: list[tuple[int, ...]] = []
    while len(left):
        cosine = np.round(vectors[left].astype(np.float64) @ vectors[left[0]].astype(np.float64), 6)
        cosine[0] = np.inf
        order = np.argsort(-cosine, kind="stable")
        count = max(1, int(np.searchsorted(np.cumsum(sizes[left[order]]), max_tokens, side="right")))
        packs.append(tuple(np.sort(left[order[:count]]).tolist()))
        left = np.delete(left, order[:count])
    return packs
