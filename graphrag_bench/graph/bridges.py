"""Shortest paths between many pairs of nodes of one big graph, all pairs at a time: HiRAG's bridges.

Each pair has a search from either end. In every round, of each pair that search grows by a step whose rim has fewer
neighbours, until the two meet. A node of a search is the number ``search · n + node``, so what all searches have reached at a
hop is one sorted array, and a round is a handful of array operations whatever the number of pairs. In an undirected graph
the neighbours of a rim lie on it, on the rim before, or beyond; so nothing else need be remembered to know what is new. A node
with one neighbour lies on no path but as its end, so searches begin beside it and never step on one.

Where paths are as short, that with the smaller node ids is taken, read from its start; the result does not depend on how the
searches went.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import Kinds, Neighbours, gather, neighbours

Keys = NDArray[np.int64]
_BLOCK = 1024  # pairs searched together: it bounds what is held at a time


class Bridges:
    """Shortest unweighted paths over relationships of some kinds, walked in both directions.

    Args:
        graph: the graph.
        kinds: the kinds of relationship that are walked.
    """

    def __init__(self, graph: Graph, kinds: Kinds) -> None:
        self._n = max(graph.n_nodes, 1)
        self._graph, self._kinds = graph, kinds
        self._field = _field(graph, kinds)

    def steps(self, walks: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return for each walk the relationship on every step, and 1 where it is walked from its source, -1 against it.

        Of parallel relationships the heaviest is taken, then that with the smaller id.
        """
        joints, by_joint = _joints(self._graph, self._kinds)
        ones = np.array([node for walk in walks for node in walk[:-1]], np.int64)
        twos = np.array([node for walk in walks for node in walk[1:]], np.int64)
        at = np.searchsorted(joints, np.minimum(ones, twos) * self._n + np.maximum(ones, twos))
        found = by_joint[at] if len(ones) else np.empty(0, np.int64)
        ways = iter(np.where(self._graph.sources[found] == ones, 1, -1).tolist())
        each = iter(found.tolist())
        return [
            (tuple(islice(each, max(len(walk) - 1, 0))), tuple(islice(ways, max(len(walk) - 1, 0)))) for walk in walks
        ]

    def between(self, pairs: Sequence[tuple[int, int]], max_hops: int | None = None) -> list[tuple[int, ...]]:
        """Return the nodes of a shortest path from the first to the second of each pair, in order.

        Args:
            pairs: nodes.
            max_hops: a longer path is none; None for any length.

        Returns:
            A path a pair, both ends among its nodes; an empty one where none leads there.
        """
        found: list[tuple[int, ...]] = []
        for start in range(0, len(pairs), _BLOCK):
            found += self._block(np.array(pairs[start : start + _BLOCK], np.int64), max_hops)
        return found

    def _block(self, pairs: Keys, max_hops: int | None) -> list[tuple[int, ...]]:
        field = self._field
        inner = field.anchor[pairs]
        hanging = inner != pairs
        beside = (inner[:, 0] == pairs[:, 1]) | (inner[:, 1] == pairs[:, 0])  # a leaf and what it hangs on
        beside |= pairs[:, 0] == pairs[:, 1]
        wanted = np.flatnonzero((field.component[pairs[:, 0]] == field.component[pairs[:, 1]]) & ~beside)
        walks: dict[int, tuple[int, ...]] = {
            at: tuple(dict.fromkeys(pairs[at].tolist())) for at in np.flatnonzero(beside).tolist()
        }
        met = inner[wanted, 0] == inner[wanted, 1]
        walks.update((at, (int(inner[at, 0]),)) for at in wanted[met].tolist())
        wanted = wanted[~met]
        searches = _Searches(inner[wanted], self._n, field.around)
        searches.run(max_hops)
        walks.update((int(wanted[at]), walk) for at, walk in searches.walks(field.edges))
        found = []
        for at, ((one, two), (first, last)) in enumerate(zip(pairs.tolist(), hanging.tolist(), strict=True)):
            walk = walks.get(at, ())
            if walk and not beside[at]:
                walk = (*((one,) if first else ()), *walk, *((two,) if last else ()))
            found.append(walk if max_hops is None or len(walk) <= max_hops + 1 else ())
        return found


class _Searches:
    """The searches of a block of pairs: number 2p from the start of pair p, number 2p + 1 from its end."""

    def __init__(self, pairs: Keys, n: int, around: Neighbours) -> None:
        self._n, self._around = n, around
        self._degree = around.degrees
        self.ends = pairs.ravel()
        self.radius = np.zeros(len(self.ends), np.int64)
        self.levels: list[list[Keys]] = [[np.arange(len(self.ends)) * n + self.ends]]
        self.met: Keys = np.empty(0, np.int64)  # where the two searches of a pair meet, as nodes of the first one

    def run(self, max_hops: int | None) -> None:
        """Grow until every pair has met, or is known to be farther apart than ``max_hops``."""
        rim, before = self.levels[0][0], np.empty(0, np.int64)
        met: list[Keys] = []
        while len(rim):
            searches = _once(rim // self._n)
            cost = np.bincount(rim // self._n, weights=self._degree[rim % self._n], minlength=len(self.ends))
            pairs = searches[::2] // 2
            if max_hops is not None:
                short = self.radius[2 * pairs] + self.radius[2 * pairs + 1] < max_hops
                rim, before = self._without(rim, pairs[~short]), self._without(before, pairs[~short])
                pairs = pairs[short]
            grown = np.zeros(len(self.ends), bool)
            grown[2 * pairs + (cost[2 * pairs] > cost[2 * pairs + 1])] = True
            self.radius[grown] += 1
            old, stays = grown[rim // self._n], grown[before // self._n]
            grows, waits = rim[old], rim[~old]
            origin, at = gather(self._around.indptr, grows % self._n)
            new = (grows // self._n)[origin] * self._n + self._around.nodes[at]
            there = new[_among((new // self._n ^ 1) * self._n + new % self._n, waits)]
            if len(there):  # what else the last step of a pair has reached is on no shortest path
                met.append(_once(there))
                done = _once(there // self._n // 2)
                new, grows, waits = (self._without(keys, done) for keys in (new, grows, waits))
                before = self._without(before, done)
                stays = grown[before // self._n]
            new = _once(new)
            new = new[~_among(new, grows) & ~_among(new, before[stays])]
            self._keep(new)
            before = np.sort(np.concatenate([before[~stays], grows]))
            rim = np.sort(np.concatenate([waits, new]))
        keys = np.concatenate([np.empty(0, np.int64), *met])
        self.met = np.sort(keys // self._n // 2 * 2 * self._n + keys % self._n)

    def _keep(self, new: Keys) -> None:
        hops = self.radius[new // self._n]
        for hop in _once(hops).tolist():
            while len(self.levels) <= hop:
                self.levels.append([])
            self.levels[hop].append(new[hops == hop])

    def _without(self, keys: Keys, pairs: Keys) -> Keys:
        gone = np.zeros(len(self.ends) // 2, bool)
        gone[pairs] = True
        return keys[~gone[keys // self._n // 2]]

    def walks(self, edges: Keys) -> list[tuple[int, tuple[int, ...]]]:
        """Return the pairs that have met, each with the first of its shortest paths.

        Args:
            edges: every edge of the graph both ways, as ``node · n + neighbour``, sorted.
        """
        pairs = _once(self.met // self._n // 2)
        if not len(pairs):
            return []
        n, levels = self._n, [np.sort(np.concatenate([np.empty(0, np.int64), *level])) for level in self.levels]
        first, second = self.radius[2 * pairs], self.radius[2 * pairs + 1]
        reach = np.full(len(self.ends) // 2, -1)
        reach[pairs] = first
        onwards = self._leading(levels, reach)
        length = first + second
        walk = np.full((len(pairs), int(length.max()) + 1), -1, np.int64)
        walk[:, 0] = self.ends[2 * pairs]
        row = np.full(len(self.ends) // 2, -1)

        def step(chosen: NDArray[np.bool_], candidates: Keys, column: Keys) -> None:
            """Walk on: the smallest candidate of each chosen pair that is beside where its walk stands."""
            row[:] = -1
            row[pairs[chosen]] = np.flatnonzero(chosen)
            mine = row[candidates // n // 2]
            candidates, mine = candidates[mine >= 0], mine[mine >= 0]
            near = _among(walk[mine, column[mine] - 1] * n + candidates % n, edges)
            at, where = np.unique(mine[near], return_index=True)
            walk[at, column[at]] = (candidates[near] % n)[where]

        for hop in range(1, int(first.max()) + 1):
            step(first >= hop, onwards[hop], np.full(len(pairs), hop))
        for left in range(int(second.max()) - 1, -1, -1):
            level = levels[left]
            step(second > left, level[level // n % 2 == 1], length - left)
        rows = zip(pairs.tolist(), walk.tolist(), length.tolist(), strict=True)
        return [(pair, tuple(nodes[: last + 1])) for pair, nodes, last in rows]

    def _leading(self, levels: Sequence[Keys], reach: Keys) -> list[Keys]:
        """Return by hop what the first searches have reached that leads on to where their pairs meet.

        Args:
            levels: by hop, what all searches have reached.
            reach: the hop at which each pair's first search meets the second, -1 where it does not.
        """
        n = self._n
        at = reach[self.met // n // 2]
        found = [np.empty(0, np.int64)] * (int(reach.max()) + 1)
        for hop in reversed(range(len(found))):
            here = self.met[at == hop]
            if hop + 1 < len(found):
                level = levels[hop]
                level = level[(level // n % 2 == 0) & (reach[level // n // 2] > hop)]
                origin, place = gather(self._around.indptr, level % n)
                leads = _among((level // n)[origin] * n + self._around.nodes[place], found[hop + 1])
                mark = np.zeros(len(level), bool)
                mark[origin[leads]] = True
                here = np.sort(np.concatenate([here, level[mark]]))
            found[hop] = here
        return found


def _once(keys: Keys) -> Keys:
    """Return keys once each, sorted; numpy's own unique would hash them, which is several times slower here."""
    keys = np.sort(keys)
    return np.asarray(keys[np.diff(keys, prepend=-1) != 0])


def _among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Say of each key whether it is among the known ones, which are sorted.

    Where there are many keys, most are not, and a look into a table of remainders says so of most of them; only the rest are
    looked up.
    """
    found = np.zeros(len(keys), bool)
    if not len(known):
        return found
    if len(keys) < len(known):
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.asarray(known[at] == keys)
    size = 1 << (8 * len(known)).bit_length()
    table = np.zeros(size, bool)
    table[known & (size - 1)] = True
    maybe = np.flatnonzero(table[keys & (size - 1)])
    at = np.minimum(np.searchsorted(known, keys[maybe]), len(known) - 1)
    found[maybe] = known[at] == keys[maybe]
    return found


class _Field(NamedTuple):
    """What searches walk on.

    Attributes:
        around: the neighbours of each node that have two or more neighbours themselves.
        edges: the same as ``node · n + neighbour``, sorted.
        anchor: the node itself, or, of one with a single neighbour, that.
        component: the connected component of each node.
    """

    around: Neighbours
    edges: Keys
    anchor: Keys
    component: NDArray[np.int32]


def _field(graph: Graph, kinds: Kinds) -> _Field:
    """Return what searches walk on, kept with the graph."""
    cache: dict[tuple[str, ...], _Field] = graph.__dict__.setdefault("_bridges", {})
    key = tuple(sorted(set(kinds)))
    if key not in cache:
        n, whole = graph.n_nodes, neighbours(graph, kinds)
        matrix = sparse.csr_array((np.ones(len(whole.nodes), np.int8), whole.nodes, whole.indptr), shape=(n, n))
        anchor = np.arange(n)
        leaves = np.flatnonzero(whole.degrees == 1)
        anchor[leaves] = whole.nodes[whole.indptr[leaves]]
        inner = whole.degrees[whole.nodes] > 1
        owner = np.repeat(np.arange(n), whole.degrees)[inner]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))]).astype(np.int64)
        around = Neighbours(indptr, whole.nodes[inner])
        component = csgraph.connected_components(matrix, directed=False)[1]
        cache[key] = _Field(around, owner * max(n, 1) + around.nodes, anchor, component)
    return cache[key]


def _joints(graph: Graph, kinds: Kinds) -> tuple[Keys, Keys]:
    """Return the pairs of nodes that relationships join, as ``smaller · n + larger``, sorted, and the first of each; kept."""
    cache: dict[tuple[str, ...], tuple[Keys, Keys]] = graph.__dict__.setdefault("_joints", {})
    key = tuple(sorted(set(kinds)))
    if key not in cache:
        chosen = graph.of_kinds(key)
        one, two = graph.sources[chosen], graph.targets[chosen]
        joint = np.minimum(one, two) * max(graph.n_nodes, 1) + np.maximum(one, two)
        order = np.lexsort((chosen, -graph.weights[chosen], joint))
        first = np.diff(joint[order], prepend=-1) != 0
        cache[key] = joint[order][first], chosen[order][first]
    return cache[key]
