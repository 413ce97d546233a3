"""Prize-collecting Steiner trees: the connected subgraph whose prizes outweigh its costs most.

The reduction and the prizes are G-Retriever's (He et al., NeurIPS 2024, section 5.3, and its code): a relationship whose
prize is at most the cost costs the rest; one whose prize exceeds it becomes a node with the excess as its prize between two
free edges. Solved by pcst_fast (Hegde, Indyk, Schmidt, ICML 2015): unrooted, one cluster, Goemans-Williamson pruning.

**Only what the solver can reach is handed to it.** It grows moats around what has a prize at equal speed and stops when at
most one cluster is active. A cluster active at time t holds a node with a prize that was in an active cluster all along, whose
moat is t wide; were two active in one component, two such nodes would be further than 2t apart. And a cluster without
another in its component is active no longer than its component's prizes last. So nothing further than

    T = max(longest distance between two prizes of one component / 2, second largest sum of prizes of a component)

from a prize is ever reached. Nodes that near keep all their relationships, in their order, so the solver does the same
steps on them as on the whole graph, ties included.
"""

from collections import deque
from functools import cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import Kinds, distinct, gather, incident
from graphrag_bench.graph.paths import Walker

Ids = NDArray[np.int64]
Values = NDArray[np.float64]
_DECAY = 0.01  # G-Retriever's c: what a lower similarity may have at most of the one above it, taken from 1


class Prizes(NamedTuple):
    """What is worth being in the tree: ids and prizes of nodes and of relationships."""

    nodes: Ids
    node_prizes: Values
    relationships: Ids
    relationship_prizes: Values


@cache
def pcst_fast_fault() -> str | None:
    """Return why pcst_fast cannot be used here, or None: it is run on one edge whose two ends are worth taking.

    Its wheels (1.0.10) are built for NumPy below 2; with NumPy 2 they raise nothing and return the first id again and again.
    """
    try:
        import pcst_fast
    except ImportError:
        return "is not installed; install graphrag-bench[steiner]"
    nodes, _ = pcst_fast.pcst_fast(np.array([[0, 1]]), np.ones(2), np.full(1, 0.5), -1, 1, "gw", 0)
    if sorted(nodes.tolist()) != [0, 1]:
        return f"returns wrong nodes with NumPy {np.__version__}; its wheels need NumPy below 2"
    return None


def solver_name() -> str:
    """Return which solver ``auto`` stands for here: pcst_fast where it is installed and works, else rustworkx."""
    return "rustworkx" if pcst_fast_fault() else "pcst_fast"


def similarity_prizes(scores: Values, top: int) -> Values:
    """Return G-Retriever's prizes of relationships: the ``top`` distinct similarities share ``top``, …, 2, 1.

    All relationships of the j-th similarity get (top - j) / their count, but at most 0.99 of what those above got.

    Args:
        scores: similarities; distinct to six decimals, as the index gives them.
        top: how many distinct similarities have a prize.
    """
    values = np.round(scores, 6)
    distinct = np.unique(values)[::-1][:top]
    prizes = np.zeros(len(scores))
    most = float(len(distinct))
    for rank, value in enumerate(distinct):
        same = values == value
        prize = min((len(distinct) - rank) / int(same.sum()), most)
        prizes[same] = prize
        most = prize * (1 - _DECAY)
    return prizes


class Field:
    """The part of a graph that a solver needs for some prizes, with ids of its own that rise as the graph's do."""

    def __init__(self, graph: Graph, walker: Walker, prizes: Prizes, cost: float, kinds: Kinds) -> None:
        self.prizes, self.cost = prizes, cost
        near = _near(graph, walker, prizes, cost)
        touching = incident(graph, kinds)
        ids = distinct(touching.relationships[gather(touching.indptr, near)[1]], graph.n_relationships)
        self.relationships = ids[graph.sources[ids] != graph.targets[ids]]
        ends = np.stack([graph.sources[self.relationships], graph.targets[self.relationships]], axis=1)
        self.nodes = distinct(np.concatenate([prizes.nodes, ends.ravel()]), graph.n_nodes)
        place = np.empty(graph.n_nodes, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        self.ends: Ids = place[ends]
        self.node_prizes = np.zeros(len(self.nodes))
        self.node_prizes[place[prizes.nodes]] = prizes.node_prizes
        self.relationship_prizes = np.zeros(len(self.relationships))
        self.relationship_prizes[np.searchsorted(self.relationships, prizes.relationships)] = prizes.relationship_prizes


def _near(graph: Graph, walker: Walker, prizes: Prizes, cost: float) -> Ids:
    """Return the nodes that a solver may reach, by rising id."""
    ends = graph.sources[prizes.relationships], graph.targets[prizes.relationships]
    centres = np.unique(np.concatenate([prizes.nodes, *ends]))
    component = walker.components[centres]
    if cost <= 0:
        return np.flatnonzero(np.isin(walker.components, component))
    names, member = np.unique(component, return_inverse=True)
    sums = np.zeros(len(names) + 1)  # one more, without a prize, where all is one component
    np.add.at(sums, member[np.searchsorted(centres, prizes.nodes)], prizes.node_prizes)
    np.add.at(sums, member[np.searchsorted(centres, ends[0])], prizes.relationship_prizes)
    # a path from a prize to anywhere costs the whole cost a hop once it has left the last relationship with a prize, whose
    # ends are centres too; a hop more makes up for rounding
    hops = max(walker.meeting(centres), int(np.sort(sums)[-2] / cost)) + 1
    return walker.within(centres, min(hops, walker.n_nodes))


def by_pcst_fast(field: Field) -> tuple[Ids, Ids]:
    """Return the nodes and relationships of the tree."""
    if fault := pcst_fast_fault():
        raise OperatorFailure(f"the solver pcst_fast {fault}, or set solver: rustworkx")
    import pcst_fast

    prized = field.relationship_prizes > field.cost
    excess = field.relationship_prizes[prized] - field.cost
    plain, virtual = np.flatnonzero(~prized), np.flatnonzero(prized)
    made = len(field.nodes) + np.arange(len(virtual))
    # a free edge from the source to the virtual node and one on to the target, relationship after relationship
    bridges = np.stack([field.ends[virtual, 0], made, made, field.ends[virtual, 1]], axis=1).reshape(-1, 2)
    edges = np.concatenate([field.ends[plain], bridges])
    costs = np.concatenate([field.cost - field.relationship_prizes[plain], np.zeros(len(bridges))])
    prizes = np.concatenate([field.node_prizes, excess])
    if not len(edges):
        best = np.argmax(prizes)
        return field.nodes[best : best + 1], np.empty(0, np.int64)
    vertices, taken = pcst_fast.pcst_fast(edges.astype(np.int64), prizes, costs, -1, 1, "gw", 0)
    chosen = np.concatenate(
        [plain[taken[taken < len(plain)]], virtual[vertices[vertices >= len(field.nodes)] - len(field.nodes)]]
    )
    nodes = np.concatenate([vertices[vertices < len(field.nodes)], field.ends[chosen].ravel()])
    return field.nodes[np.unique(nodes)], field.relationships[np.unique(chosen)]


def by_rustworkx(field: Field) -> tuple[Ids, Ids]:
    """Return the nodes and relationships of an approximation: a Steiner tree of the nodes with prizes, cut to what is worth it.

    The nodes with prizes and the ends of relationships that are worth more than they cost, of the component with most of
    such, are joined as cheaply as rustworkx's 2-approximation does it; of that tree the connected part with the greatest
    prizes less costs is taken. A relationship worth less than it costs is cheaper to take, but no reason to go anywhere.
    """
    import rustworkx as rx

    worth = field.node_prizes.copy()
    excess = np.maximum(field.relationship_prizes - field.cost, 0.0)
    np.add.at(worth, field.ends.ravel(), np.repeat(excess / 2, 2))
    count = len(field.nodes)
    joins = sparse.csr_array((np.ones(len(field.ends), np.int8), field.ends.T), shape=(count, count))
    component = csgraph.connected_components(joins, directed=False)[1]
    here = component == np.argmax(np.bincount(component, weights=worth))
    terminals = np.flatnonzero(here & (worth > 0)).tolist()
    if len(terminals) < 2:
        return field.nodes[terminals], np.empty(0, np.int64)
    joined = rx.PyGraph(multigraph=True)
    joined.add_nodes_from(range(count))
    inside = np.flatnonzero(here[field.ends[:, 0]])
    costs = np.maximum(field.cost - field.relationship_prizes, 0.0)
    sides = field.ends[inside].T.tolist()
    joined.add_edges_from(list(zip(*sides, zip(costs[inside].tolist(), inside.tolist(), strict=True), strict=True)))
    tree = rx.steiner_tree(joined, terminals, itemgetter(0))
    nodes, chosen = _worthiest(field, sorted(number for _, number in tree.edges()))
    return field.nodes[np.unique(nodes)], field.relationships[np.array(sorted(chosen), dtype=np.int64)]


def _worthiest(field: Field, chosen: list[int]) -> tuple[list[int], list[int]]:
    """Return the nodes and edges of the connected part of a tree that is worth most: prizes less costs, ties to the larger."""
    at: dict[int, list[tuple[int, int]]] = {}
    for edge in chosen:
        one, two = field.ends[edge].tolist()
        at.setdefault(one, []).append((edge, two))
        at.setdefault(two, []).append((edge, one))
    start = min(at)
    above, visit = {start: -1}, [start]
    for node in visit:
        for _, other in at[node]:
            if other not in above:
                above[other] = node
                visit.append(other)
    worth: dict[int, float] = {}
    for node in reversed(visit):  # what hangs below a node counts where it is worth the way to it
        worth[node] = field.node_prizes[node] + sum(gain for gain, _, _ in _below(field, at, above, worth, node))
    top = max(visit, key=lambda node: (worth[node], -node))
    nodes, edges = [top], []
    for node in nodes:
        for _, edge, other in _below(field, at, above, worth, node):
            nodes.append(other)
            edges.append(edge)
    return nodes, edges


def _below(
    field: Field, at: dict[int, list[tuple[int, int]]], above: dict[int, int], worth: dict[int, float], node: int
) -> list[tuple[float, int, int]]:
    """Return what below a node is worth the way: its gain, the edge and the node there."""
    ways = ((edge, other) for edge, other in at[node] if above[other] == node)
    gains = [(worth[other] + field.relationship_prizes[edge] - field.cost, edge, other) for edge, other in ways]
    return [way for way in gains if way[0] >= 0]


def visited(graph: Graph, start: int, relationships: Ids) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the nodes and relationships of a connected subgraph in the order of a breadth-first visit, ties by id."""
    at: dict[int, list[tuple[int, int]]] = {start: []}
    for number in sorted(relationships.tolist()):
        source, target = int(graph.sources[number]), int(graph.targets[number])
        at.setdefault(source, []).append((number, target))
        at.setdefault(target, []).append((number, source))
    nodes: dict[int, None] = {start: None}
    taken: dict[int, None] = {}
    waiting = deque([start])
    while waiting:
        for number, other in at[waiting.popleft()]:
            taken[number] = None
            if other not in nodes:
                nodes[other] = None
                waiting.append(other)
    return tuple(nodes), tuple(taken)
