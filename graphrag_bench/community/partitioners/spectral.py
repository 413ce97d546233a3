"""Spectral clustering (Ng, Jordan and Weiss, 2001) with sparse eigenvectors, component by component."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphrag_bench.community.augmented import symmetric
from graphrag_bench.community.kmeans import kmeans
from graphrag_bench.community.layered import Layer
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_DENSE = 256  # up to so many nodes all eigenvectors at once are faster than Lanczos


@register("partitioner", "spectral")
def spectral(layer: Layer, *, mean_size: int = 15, dimensions: int = 64, seed: int = 0) -> NDArray[np.int64]:
    """Divide every connected component of n nodes into ⌈n / ``mean_size``⌉ clusters by k-means on eigenvectors.

    The eigenvectors are those of the small end of the normalised Laplacian L = I - S with S = D^-1/2 W D^-1/2, found as
    the large end of S, which are the same (ArchRAG's code takes the large end of L, where nodes that are joined get far
    from each other). Components are divided each by itself, since between them the Laplacian says nothing: the eigenvalue
    0 comes once a component, in any basis. Rows are scaled to length 1. A component of at most ``mean_size`` nodes is one
    cluster, a node without an edge is alone.

    Args:
        layer: its edges are the augmented and weighted ones.
        mean_size: mean nodes a cluster (ArchRAG: 15).
        dimensions: eigenvectors at most; as many as there are clusters, where that is less.
        seed: of the vector Lanczos starts from, and of k-means.

    Raises:
        UserError: A setting is out of its range.
    """
    for name, value in (("mean_size", mean_size), ("dimensions", dimensions)):
        if value < 1:
            raise UserError(f"community.{name} is {value}.", "Write 1 or more.")
    weights = symmetric(layer.edges, len(layer))
    count, component = connected_components(weights, directed=False)
    sizes = np.bincount(component, minlength=count)
    labels = component.astype(np.int64)
    order = np.argsort(component, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    free = count
    for number in np.flatnonzero(sizes > mean_size).tolist():
        nodes = order[starts[number] : starts[number + 1]]
        clusters = -(-len(nodes) // mean_size)
        points = small_end(weights[nodes][:, nodes], min(clusters, dimensions), seed)
        length = np.linalg.norm(points, axis=1, keepdims=True)
        labels[nodes] = free + kmeans(points / np.maximum(length, np.finfo(np.float64).tiny), clusters, seed)
        free += clusters
    return labels


def small_end(weights: sparse.csr_array, count: int, seed: int) -> NDArray[np.float64]:
    """Return the eigenvectors of the ``count`` smallest eigenvalues of a connected graph's normalised Laplacian.

    Args:
        weights: (n, n) symmetric; every node has an edge.
        count: how many, fewer than n.
        seed: of the vector Lanczos starts from.

    Returns:
        (n, count), the smallest eigenvalue's first.
    """
    n = weights.shape[0]
    root = sparse.diags_array(1 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel()))
    similar = sparse.csr_array(root @ weights @ root)
    if n <= _DENSE or count > n // 3:
        _, vectors = np.linalg.eigh(similar.toarray())
        return np.asarray(vectors[:, ::-1][:, :count])
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(seed).standard_normal(n)
    values, vectors = eigsh(similar, k=count, which="LA", v0=start, tol=1e-6)
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")])
