"""node2vec's random walks (Grover and Leskovec, 2016), all walkers at once on a sparse matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def random_walks(
    weights: sparse.csr_array, walks: int, length: int, p: float, q: float, seed: int
) -> NDArray[np.int64]:
    """Walk from every node that has an edge, ``walks`` times, every round in an order of its own.

    The next node is drawn in proportion to the edge's weight times 1/p for the node the walker came from, 1 for a
    neighbour of that node and 1/q for any other. It is drawn by weight alone and kept with the probability that the bias
    leaves (rejection, as in KnightKing; Yang et al., 2019), so no table a pair of edges is built.

    Args:
        weights: (n, n) symmetric with sorted indices and positive values.
        walks: a node.
        length: nodes of a walk.
        p: return parameter.
        q: in-out parameter.
        seed: of everything drawn.

    Returns:
        (walks x nodes with an edge, length) node ids.
    """
    generator = np.random.default_rng(seed)
    indptr, indices = weights.indptr.astype(np.int64), weights.indices.astype(np.int64)
    n = weights.shape[0]
    starts = np.flatnonzero(np.diff(indptr))
    paths = np.empty((walks * len(starts), length), dtype=np.int64)
    if not len(paths):
        return paths
    paths[:, 0] = np.concatenate([generator.permutation(starts) for _ in range(walks)])
    upto = np.concatenate([[0.0], np.cumsum(weights.data)])
    keys = np.repeat(np.arange(n), np.diff(indptr)) * np.int64(n) + indices
    most = max(1 / p, 1.0, 1 / q)

    def draw(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = upto[indptr[nodes]], upto[indptr[nodes + 1]]
        place = np.searchsorted(upto, low + generator.random(len(nodes)) * (high - low), side="right") - 1
        place = np.clip(place, indptr[nodes], indptr[nodes + 1] - 1)  # a sum may round up to the next node's
        drawn: NDArray[np.int64] = indices[place]
        return drawn

    for step in range(1, length):
        at = paths[:, step - 1]
        if step == 1 or p == q == 1:
            paths[:, step] = draw(at)
            continue
        before = paths[:, step - 2]
        open_ = np.arange(len(paths))
        while len(open_):
            found = draw(at[open_])
            wanted = before[open_] * np.int64(n) + found
            known = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
            bias = np.where(found == before[open_], 1 / p, np.where(known, 1.0, 1 / q))
            kept = generator.random(len(open_)) * most < bias
            paths[open_[kept], step] = found[kept]
            open_ = open_[~kept]
    return paths
