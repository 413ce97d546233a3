"""Personalised PageRank on big graphs: low-degree nodes are eliminated once, and each question solves what is left.

With D the degrees and A the adjacency, the scores p of a restart v solve the symmetric positive definite system

    H p = β,  H = D⁻¹ - α D⁻¹ A D⁻¹,  β = (1 - α) D⁻¹ v.

Nodes of at most three neighbours are eliminated exactly (see `graphrag_bench.graph.elimination`); what that leaves is again
such a system, better conditioned, and conjugate gradients solve it a question at a time: the core's vectors then stay in
the processor's cache, and no question depends on another.

**The bound.** The eliminated rows hold exactly; let r be the residual (1 - α) v - (I - αM) p̂ of the others, M = A D⁻¹. M's
columns sum to at most 1, so ‖p̂ - p‖₁ = ‖(I - αM)⁻¹ r‖₁ ≤ ‖r‖₁ / (1 - α). A question is done when that is at most the
tolerance: all its scores together, and so any one of them, are off by no more. (For a local push, the bound a node is
ε deg(u): nothing useful at a hub, whose degree is in the tens of thousands.)

Source of the iteration: Golub and Van Loan, Matrix Computations, 4th ed., section 11.3 (conjugate gradients).
"""

import math
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.elimination import eliminate
from graphrag_bench.graph.graph import Graph

_FINEST = 1e-12  # below it the rounding of the sums, not the iteration, decides
_BLOCK = 64  # questions whose restarts are carried to the core together

Vector = NDArray[np.float64]
Sparse = sparse.csr_array


@dataclass(frozen=True, eq=False)
class _Level:
    """One round: the nodes at positions ``first`` up to ``last``, as combinations of those before ``first``."""

    first: int
    last: int
    combine: Sparse  # (last - first, first): p[first:last] = combine @ p[:first] + β[first:last] / diagonal


@dataclass(frozen=True, eq=False)
class ReducedWalk:
    """A graph made ready for Personalised PageRank at one damping.

    Attributes:
        damping: probability to follow an edge, in [0, 1).
        order: the node at each position; the core stands first, then the rounds of elimination, the last one first.
        position: the position of each node.
        degree: the weight around the node at each position; 1 at an isolated one, whose walker restarts.
        isolated: whether the node at each position is isolated.
        diagonal: what a node's row of H is divided by, at each position.
        core: the off-diagonal part of H over the core, scaled to a unit diagonal.
        scale: that scaling, 1/√diagonal over the core.
        levels: the rounds of elimination, the last one first.
    """

    damping: float
    order: NDArray[np.int64]
    position: NDArray[np.int64]
    degree: Vector
    isolated: NDArray[np.bool_]
    diagonal: Vector
    core: Sparse
    scale: Vector
    levels: tuple[_Level, ...]

    def rank(
        self, restart: Sparse, tolerance: float, top_k: int | None = None
    ) -> list[tuple[NDArray[np.int64], Vector]]:
        """Return (ids, scores) for each row of ``restart``, best first; a row without mass has none.

        Args:
            restart: (size, n) non-negative, of any scale.
            tolerance: the most by which the scores of a question, which sum to 1, may together be off.
            top_k: nodes to keep, among equals at the cut the smaller ids; null keeps all above 0.
        """
        check_tolerance(tolerance)
        rows: list[tuple[NDArray[np.int64], Vector]] = []
        for start in range(0, restart.shape[0], _BLOCK):
            block = sparse.csr_array(restart[start : start + _BLOCK])
            mass = np.asarray(block.sum(axis=1), dtype=np.float64).ravel()
            source, whole = self._source(block, np.where(mass > 0, mass, 1.0))
            for number in range(block.shape[0]):
                part = slice(int(source.indptr[number]), int(source.indptr[number + 1]))
                where, beta = source.indices[part], source.data[part]
                scores = self._solve(where, beta, (1.0 - self.damping) * tolerance * whole[number]) / whole[number]
                rows.append(self._best(scores, top_k) if mass[number] > 0 else (np.empty(0, np.int64), np.empty(0)))
        return rows

    def _source(self, block: Sparse, mass: Vector) -> tuple[Sparse, Vector]:
        """Return β by position, carried down to the core, and what the scores of each row will sum to.

        Isolated nodes lose the walker; dividing by that sum gives it back to its restart.
        """
        size, n = block.shape
        row = np.repeat(np.arange(size), np.diff(block.indptr))
        at = self.position[block.indices]
        share = block.data / mass[row]
        lost = np.bincount(row, share * self.isolated[at], minlength=size).astype(np.float64)
        values = (1.0 - self.damping) * share / self.degree[at]
        source = sparse.csr_array(sparse.coo_array((values, (row, at)), shape=(size, n)))
        for level in reversed(self.levels):
            moved = sparse.csr_array(source[:, level.first : level.last] @ level.combine)
            moved.sort_indices()  # the order of the sums must not depend on whether other rows happen to be sorted
            wide = sparse.csr_array((moved.data, moved.indices, moved.indptr), shape=(size, n))
            source = sparse.csr_array(source + wide)
        return source, 1.0 - self.damping * lost

    def _solve(self, where: NDArray[Any], beta: Vector, enough: float) -> Vector:
        """Return the scores by position, given β where it is not 0."""
        size = len(self.scale)
        scores = np.empty(len(self.order))
        inner = where < size
        right = np.zeros(size)
        right[where[inner]] = beta[inner]
        right *= self.scale
        scores[:size] = self._conjugate_gradients(right, enough)
        for level in self.levels:
            scores[level.first : level.last] = level.combine @ scores[: level.first]
            here = (where >= level.first) & (where < level.last)
            scores[where[here]] += beta[here] / self.diagonal[where[here]]
        return scores

    def _conjugate_gradients(self, residual: Vector, enough: float) -> Vector:
        """Solve the core; ``residual`` is β scaled, and is used up."""
        found = np.zeros_like(residual)
        weight = self.degree[: len(residual)] / self.scale  # brings a residual back to the units of v
        direction = residual.copy()
        square = _dot(residual, residual)
        for _ in range(100 + math.ceil(50 * math.sqrt((1 + self.damping) / (1 - self.damping)))):
            if _dot(np.abs(residual), weight) <= enough:
                return found * self.scale
            image = direction - self.core @ direction
            length = square / _dot(direction, image)
            found += length * direction
            residual -= length * image
            before, square = square, _dot(residual, residual)
            direction *= square / before
            direction += residual
        raise OperatorFailure("Personalised PageRank did not settle: the graph's weights are not finite and positive")

    def _best(self, scores: Vector, top_k: int | None) -> tuple[NDArray[np.int64], Vector]:
        cut = np.nextafter(0.0, 1.0)
        if top_k is not None and top_k < len(scores):
            # the k-th best of the core, where the hubs are, is at most the k-th best of all: it leaves few to sort
            among = scores[: len(self.scale)] if 0 < top_k < len(self.scale) else scores
            cut = max(cut, np.partition(among, len(among) - top_k)[len(among) - top_k]) if top_k > 0 else np.inf
        at = np.flatnonzero(scores >= cut)
        ids, values = self.order[at], scores[at]
        best = np.lexsort((ids, -values))[:top_k]
        return ids[best], values[best]


def check_tolerance(tolerance: float) -> None:
    """Raise OperatorFailure if no score can be told, or none can be told so well."""
    if not _FINEST <= tolerance < 1.0:
        raise OperatorFailure(f"tolerance is a share of the scores, from {_FINEST} to below 1, and found {tolerance}")


def _dot(one: Vector, two: Vector) -> float:
    """Return the inner product, not by BLAS: its result may depend on how many threads it has."""
    return float(np.einsum("i,i->", one, two))


def reduce_walk(adjacency: Sparse, damping: float) -> ReducedWalk:
    """Make a graph ready.

    Args:
        adjacency: symmetric non-negative (n, n).
        damping: probability to follow an edge, in [0, 1).
    """
    if not 0.0 <= damping < 1.0:
        raise OperatorFailure(f"damping is a probability below 1, and found {damping}")
    n = adjacency.shape[0]
    degree = np.asarray(adjacency.sum(axis=0), dtype=np.float64).ravel()
    isolated = degree <= 0
    degree[isolated] = 1.0
    links = sparse.csr_array(adjacency.astype(np.float64))
    rows = np.repeat(np.arange(n), np.diff(links.indptr))
    links.data *= damping / (degree[rows] * degree[links.indices])
    left, rounds = eliminate(links, 1.0 / degree)
    hubs_first = np.argsort(-np.diff(left.links.indptr), kind="stable")  # rows often read stand together in the cache
    scale = 1.0 / np.sqrt(left.diagonal[hubs_first])
    core = sparse.csr_array(left.links[hubs_first][:, hubs_first])
    core.data *= np.repeat(scale, np.diff(core.indptr)) * scale[core.indices]
    core.sort_indices()
    order, diagonal, levels = left.nodes[hubs_first], left.diagonal[hubs_first], []
    position = np.full(n, n, np.int64)
    position[order] = np.arange(len(order))
    for taken in reversed(rounds):
        first, last = len(order), len(order) + len(taken.nodes)
        parts = (taken.combine.data, position[taken.stay][taken.combine.indices], taken.combine.indptr)
        combine = sparse.csr_array(parts, shape=(last - first, first))
        combine.sort_indices()
        nearest = np.full(last - first, n)
        some = np.diff(combine.indptr) > 0
        nearest[some] = combine.indices[combine.indptr[:-1][some]]
        by_nearest = np.argsort(nearest, kind="stable")  # the same for reading these nodes' neighbours
        levels.append(_Level(first, last, sparse.csr_array(combine[by_nearest])))
        position[taken.nodes[by_nearest]] = np.arange(first, last)
        order = np.concatenate([order, taken.nodes[by_nearest]])
        diagonal = np.concatenate([diagonal, taken.diagonal[by_nearest]])
    return ReducedWalk(damping, order, position, degree[order], isolated[order], diagonal, core, scale, tuple(levels))


_LAST: WeakKeyDictionary[Graph, tuple[bool, ReducedWalk]] = WeakKeyDictionary()


def reduced_walk(graph: Graph, weighted: bool, damping: float) -> ReducedWalk:
    """Return the graph made ready; the last one made is kept as long as the graph, for batches of one question."""
    kept = _LAST.get(graph)
    if kept is None or kept[0] != weighted or kept[1].damping != damping:
        kept = _LAST[graph] = (weighted, reduce_walk(graph.adjacency(weighted), damping))
    return kept[1]
