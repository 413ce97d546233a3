"""Who touches whom, as index arrays: the relationships at each node, and its neighbours; made once for a choice of kinds."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.graph import KINDS, Graph

Kinds = tuple[Literal["fact", "synonym", "is_a", "member", "passage"], ...]
FACTS: Kinds = ("fact",)
Index = NDArray[Any]
T = TypeVar("T")


class Incident(NamedTuple):
    """The relationships at each node: entries ``indptr[v]`` up to ``indptr[v + 1]`` are node v's, by rising id.

    A relationship stands at both its ends, and a loop once. ``others`` is the node at the other end.
    """

    indptr: Index
    relationships: Index
    others: Index


class Neighbours(NamedTuple):
    """The neighbours of each node in the undirected simple view: no loops, parallel relationships merged, by rising id."""

    indptr: Index
    nodes: Index

    @property
    def degrees(self) -> Index:
        """How many neighbours each node has."""
        return np.diff(self.indptr)


def incident(graph: Graph, kinds: Iterable[str] = FACTS) -> Incident:
    """Return the relationships of the given kinds at each node."""
    return _kept(graph, "incident", kinds, _incident)


def neighbours(graph: Graph, kinds: Iterable[str] = FACTS) -> Neighbours:
    """Return the neighbours of each node over relationships of the given kinds."""
    return _kept(graph, "neighbours", kinds, _neighbours)


def by_degree(graph: Graph, kinds: Iterable[str] = FACTS) -> NDArray[np.float64]:
    """Return a number for each relationship that orders them by their ends' degrees together, then by weight.

    The whole part is the degrees' sum (neighbours over the given kinds), the fraction the share of the graph's distinct
    weights that are below the relationship's.
    """
    return _kept(graph, "by_degree", kinds, _by_degree)


def gather(indptr: Index, rows: Index) -> tuple[Index, Index]:
    """Return for the entries of some rows, one row after the other: which of ``rows`` each belongs to, and where it stands."""
    starts = indptr[rows]
    counts = indptr[rows + 1] - starts
    before = np.cumsum(counts) - counts
    origin = np.repeat(np.arange(len(rows)), counts)
    return origin, np.arange(len(origin)) + np.repeat(starts - before, counts)


def distinct(ids: Index, n: int) -> NDArray[np.int64]:
    """Return ids below ``n`` once each, rising; many are marked in an array instead of sorted."""
    if len(ids) * 16 < n:
        ids = np.sort(ids)
        return np.asarray(ids[np.diff(ids, prepend=-1) != 0], dtype=np.int64)
    there = np.zeros(n, dtype=bool)
    there[ids] = True
    return np.flatnonzero(there)


def marked(graph: Graph, kinds: Iterable[str] = FACTS) -> NDArray[np.bool_]:
    """Say of every relationship whether it is of one of the kinds."""
    return np.isin(graph.kinds, [KINDS.index(name) for name in _names(kinds)])


def _names(kinds: Iterable[str]) -> tuple[str, ...]:
    names = tuple(sorted(set(kinds)))
    for name in names:
        if name not in KINDS:
            raise OperatorFailure(f"no kind of relationship is called {name!r}; the kinds are {', '.join(KINDS)}")
    return names


def _kept(graph: Graph, what: str, kinds: Iterable[str], make: Callable[[Graph, tuple[str, ...]], T]) -> T:
    names = _names(kinds)
    cache: dict[tuple[str, tuple[str, ...]], T] = graph.__dict__.setdefault("_incident", {})
    if (what, names) not in cache:
        cache[what, names] = make(graph, names)
    return cache[what, names]


def _incident(graph: Graph, kinds: tuple[str, ...]) -> Incident:
    chosen = graph.of_kinds(kinds)
    sources, targets = graph.sources[chosen], graph.targets[chosen]
    back = sources != targets
    nodes = np.concatenate([sources, targets[back]])
    relationships = np.concatenate([chosen, chosen[back]])
    by_node = np.lexsort((relationships, nodes))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=graph.n_nodes))]).astype(np.int64)
    others = np.concatenate([targets, sources[back]])
    return Incident(indptr, relationships[by_node], others[by_node])


def _neighbours(graph: Graph, kinds: tuple[str, ...]) -> Neighbours:
    chosen = graph.of_kinds(kinds)
    sources, targets = graph.sources[chosen], graph.targets[chosen]
    keep = sources != targets
    ends = np.concatenate([sources[keep], targets[keep]]), np.concatenate([targets[keep], sources[keep]])
    shape = (graph.n_nodes, graph.n_nodes)
    matrix = sparse.coo_array((np.ones(len(ends[0]), np.int8), ends), shape=shape).tocsr()
    matrix.sum_duplicates()
    return Neighbours(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))


def _by_degree(graph: Graph, kinds: tuple[str, ...]) -> NDArray[np.float64]:
    degrees = neighbours(graph, kinds).degrees
    weights, rank = np.unique(graph.weights, return_inverse=True)
    scores: NDArray[np.float64] = degrees[graph.sources] + degrees[graph.targets] + rank / max(len(weights), 1)
    return scores
