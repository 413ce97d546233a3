"""Fewer dimensions before a mixture is fitted: seeded UMAP, as in RAPTOR, or principal components."""

import warnings
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.errors import UserError

Reduction = Literal["umap", "pca", "none"]


def need(reduction: Reduction) -> None:
    """Raise UserError where the library is missing; cheap, since nothing is imported."""
    if reduction == "umap" and find_spec("umap") is None:
        raise _missing()


def project(
    vectors: NDArray[Any], reduction: Reduction, *, dimensions: int, neighbours: int, seed: int
) -> NDArray[np.float64]:
    """Return the vectors in fewer dimensions, the same for the same seed.

    Args:
        vectors: (n, d) unit vectors; n at least ``dimensions`` + 2.
        reduction: UMAP by cosine, principal components, or nothing.
        dimensions: columns to have at most.
        neighbours: UMAP's ``n_neighbors``; at least 2 are taken.
        seed: UMAP's ``random_state``; with it UMAP runs on one thread.

    Returns:
        (n, at most ``dimensions``) in double precision, in which covariances keep their rank.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    size = min(dimensions, len(wide) - 2, wide.shape[1])
    if reduction == "none" or size == wide.shape[1]:
        return wide
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal vectors; small and disconnected neighbourhoods: all to be expected here
        if reduction == "pca":
            from sklearn.decomposition import PCA

            return np.asarray(PCA(size, svd_solver="full").fit_transform(wide), dtype=np.float64)
        try:
            from umap import UMAP
        except ImportError as error:
            raise _missing() from error
        model = UMAP(n_neighbors=max(2, neighbours), n_components=size, metric="cosine", random_state=seed, n_jobs=1)
        return np.asarray(model.fit_transform(np.asarray(vectors, dtype=np.float32)), dtype=np.float64)


def _missing() -> UserError:
    return UserError(
        "The tree's clustering wants UMAP, which is not installed.",
        "Install graphrag-bench[tree], or use graph.reduction=pca.",
    )
