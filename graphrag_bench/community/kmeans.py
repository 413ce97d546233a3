"""k-means of a layer's nodes by some points of theirs."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def kmeans(points: NDArray[Any], clusters: int, seed: int) -> NDArray[np.int64]:
    """Return a cluster a point by seeded k-means++ (Lloyd), in one thread so that sums do not hang on the number of cores.

    Args:
        points: (points, dimensions).
        clusters: how many; fewer come back where points are equal.
        seed: of the first centres.
    """
    clusters = min(clusters, len(points))
    if clusters <= 1:
        return np.zeros(len(points), dtype=np.int64)
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # fewer distinct points than clusters
        model = KMeans(clusters, init="k-means++", n_init=1, random_state=seed, algorithm="lloyd")
        return np.asarray(model.fit_predict(np.ascontiguousarray(points, dtype=np.float64)), dtype=np.int64)
