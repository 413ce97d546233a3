"""Exact elimination of the nodes of low degree from a symmetric system on a graph.

Graphs of knowledge have heavy tails: half of the nodes and more have one neighbour, and most have at most three. An
independent set of those is taken out in a round: its block of the matrix is diagonal, so a round is one sparse product,
and p of what is taken out is a combination of p of its neighbours. Taking out a node of degree d ≤ 3 removes d edges and
adds at most d(d - 1)/2 ≤ d between its neighbours, so what is left never has more edges than there were.

Source: Livne and Brandt, Lean Algebraic Multigrid, SIAM J. Sci. Comput. 34 (2012), B499-B522: the elimination of
low-degree nodes (there of degree up to 4).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Sparse = sparse.csr_array
_DEGREE = 3  # beyond it an elimination may add more edges than it removes
_ROUNDS = 12
_WORTH = 0.01  # a round that takes out less of what is left than this share does not pay for itself
_FIRST = 1 << 40  # above any priority


class Left(NamedTuple):
    """What remains: its ``nodes``, the ``links`` between them and the ``diagonal`` of their system."""

    nodes: NDArray[np.int64]
    links: Sparse
    diagonal: NDArray[np.float64]


class Taken(NamedTuple):
    """One round: p[nodes] = combine @ p[stay] + right side[nodes] / diagonal."""

    nodes: NDArray[np.int64]
    stay: NDArray[np.int64]
    combine: Sparse
    diagonal: NDArray[np.float64]


def eliminate(links: Sparse, diagonal: NDArray[np.float64]) -> tuple[Left, list[Taken]]:
    """Eliminate from (diag(diagonal) - links) p = right side what has at most three neighbours, over and over.

    The right side of what stays gains combine.T @ right side[nodes], round after round.

    Args:
        links: symmetric non-negative (n, n); used up.
        diagonal: (n,), with which the matrix is positive definite.
    """
    links, diagonal = _without_diagonal(links, diagonal)
    nodes = np.arange(len(diagonal))
    priority = np.random.default_rng(0).permutation(len(diagonal))
    rounds: list[Taken] = []
    while len(rounds) < _ROUNDS:
        out = _independent(links, priority[nodes])
        if out.sum() <= _WORTH * len(nodes):
            break
        gone, stay = np.flatnonzero(out), np.flatnonzero(~out)
        across = sparse.csr_array(links[gone][:, stay])
        combine = across.copy()
        combine.data /= np.repeat(diagonal[gone], np.diff(across.indptr))
        rounds.append(Taken(nodes[gone], nodes[stay], combine, diagonal[gone]))
        links = sparse.csr_array(links[stay][:, stay] + across.T @ combine)
        links, diagonal = _without_diagonal(links, diagonal[stay])
        nodes = nodes[stay]
    return Left(nodes, links, diagonal), rounds


def _without_diagonal(links: Sparse, diagonal: NDArray[np.float64]) -> tuple[Sparse, NDArray[np.float64]]:
    """Return the links between different nodes, and the diagonal less what led from a node to itself."""
    loops = links.diagonal()
    if loops.any():
        links.data[np.repeat(np.arange(links.shape[0]), np.diff(links.indptr)) == links.indices] = 0.0
    links.eliminate_zeros()
    return links, diagonal - loops


def _independent(links: Sparse, priority: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which nodes of low degree to take out: of two neighbours, the one of lower degree, then higher priority.

    Leaves thus go first, and the leaves of one node, which tie, are all computed alike.
    """
    degree = np.diff(links.indptr)
    low = degree <= _DEGREE
    rank = np.where(low, priority + (_DEGREE - degree).astype(np.int64) * _FIRST, -1)
    best = np.full(len(degree), -1, dtype=np.int64)
    edges = np.repeat(low, degree)
    rows = np.repeat(np.arange(len(degree)), degree)[edges]
    np.maximum.at(best, rows, rank[links.indices[edges]])
    return low & (rank > best)
