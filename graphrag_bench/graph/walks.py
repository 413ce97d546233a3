"""Personalised PageRank by Chebyshev iteration.

On an undirected graph the walk matrix M = A D⁻¹ has real eigenvalues in [-1, 1], so those of I - αM lie in [1 - α, 1 + α]
and Chebyshev's semi-iteration solves (I - αM) p = (1 - α) v with an error that shrinks by (√κ - 1)/(√κ + 1) a step,
κ = (1 + α)/(1 - α): 0.27 at α = 0.5 where the power iteration has 0.5, and 0.56 at 0.85 where it has 0.85. It needs no
inner products, so a block of questions costs one sparse product a step.

Source of the iteration: Golub and Van Loan, Matrix Computations, 4th ed., section 11.2.8 (the semi-iterative method for
x = Bx + b with B's eigenvalues in [-α, α]).
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.errors import OperatorFailure

_COLUMNS = 32  # questions a block: the block's vectors should stay in the processor's cache
_TOLERANCE = 1e-10


def personalised_pagerank(
    adjacency: sparse.csr_array, restart: NDArray[np.float64], damping: float, tolerance: float = _TOLERANCE
) -> NDArray[np.float64]:
    """Return the stationary distributions, (size, n), one row a row of ``restart``.

    A walker at an isolated node restarts. A row of ``restart`` without mass gives a row of zeros. The number of steps
    follows from the damping alone, so a question's scores do not depend on the questions beside it.

    Args:
        adjacency: symmetric non-negative (n, n).
        restart: (size, n) non-negative, of any scale.
        damping: probability to follow an edge, in [0, 1).
        tolerance: the factor by which the error of the first guess is brought down.
    """
    if not 0.0 <= damping < 1.0:
        raise OperatorFailure(f"damping is a probability below 1, and found {damping}")
    degree = np.asarray(adjacency.sum(axis=0), dtype=np.float64).ravel()
    walk = sparse.csr_array(adjacency * np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0))
    out = np.zeros(restart.shape)
    used = np.flatnonzero(restart.sum(axis=1) > 0)
    for start in range(0, len(used), _COLUMNS):
        rows = used[start : start + _COLUMNS]
        out[rows] = _solve(walk, restart[rows], damping, _steps(damping, tolerance))
    return out


def _steps(damping: float, tolerance: float) -> int:
    """Return how many steps bring the error down by ``tolerance``: it is at most 2 ρᵏ of the first guess's."""
    if damping == 0.0:
        return 0
    root = math.sqrt((1.0 + damping) / (1.0 - damping))
    return math.ceil(math.log(tolerance / 2.0) / math.log((root - 1.0) / (root + 1.0)))


def _solve(walk: sparse.csr_array, restart: NDArray[np.float64], damping: float, steps: int) -> NDArray[np.float64]:
    present = np.ascontiguousarray((restart / restart.sum(axis=1, keepdims=True)).T)  # (n, block)
    seeds = np.nonzero(present)
    source = (1.0 - damping) * present[seeds]  # few entries: added where they are, not as a dense matrix
    before = np.zeros_like(present)
    omega = 1.0
    for step in range(steps):
        following = walk @ present
        following *= damping * omega
        following[seeds] += omega * source
        if step:
            before *= 1.0 - omega
            following += before
        before, present = present, following
        omega = 1.0 / (1.0 - damping**2 / 2.0) if step == 0 else 1.0 / (1.0 - damping**2 * omega / 4.0)
    np.maximum(present, 0.0, out=present)
    scores = np.ascontiguousarray(present.T)
    scores /= scores.sum(axis=1, keepdims=True)  # what a walker lost at isolated nodes goes back to its restart
    return scores
