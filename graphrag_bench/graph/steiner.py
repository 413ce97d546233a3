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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def solver_name() -> str:
    """Return which solver ``auto`` stands for here: pcst_fast where it is installed, else rustworkx."""
    from importlib.util import find_spec

    return "pcst_fast" if find_spec("pcst_fast") is not None else "rustworkx"


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
    try:
        import pcst_fast
    except ImportError as error:
        raise OperatorFailure("the solver pcst_fast is not installed; install graphrag-bench[steiner]") from error
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
    """Return the nodes and relationships of an approximation: a Steiner tree of the nodes with prizes, its ends cut back.

    The nodes with prizes of the component with most of them are joined as cheaply as rustworkx's 2-approximation does it; then,
    while a leaf and its relationship are worth less than they cost, they are cut off. A relationship with a prize is cheaper
    to take, but is never a reason to go anywhere.
    """
    import rustworkx as rx

    costs = np.maximum(field.cost - field.relationship_prizes, 0.0)
    joined = rx.PyGraph(multigraph=True)
    joined.add_nodes_from(range(len(field.nodes)))
    joined.add_edges_from([(a, b, at) for at, (a, b) in enumerate(field.ends.tolist())])
    worth = field.node_prizes
    if not worth.any():
        worth = np.zeros(len(field.nodes))
        np.maximum.at(worth, field.ends.ravel(), np.repeat(field.relationship_prizes, 2))
    parts = [sorted(part) for part in rx.connected_components(joined)]
    part = max(parts, key=lambda nodes: (worth[nodes].sum(), -nodes[0]))
    terminals = [node for node in part if worth[node] > 0]
    if len(terminals) < 2:
        return field.nodes[terminals], np.empty(0, np.int64)
    tree = rx.steiner_tree(joined, terminals, lambda at: float(costs[at]))
    chosen = _cut_back(sorted(tree.edges()), field)
    nodes = field.ends[chosen].ravel() if chosen else np.array([terminals[int(np.argmax(worth[terminals]))]])
    return field.nodes[np.unique(nodes)], field.relationships[chosen]


def _cut_back(chosen: list[int], field: Field) -> list[int]:
    """Take leaves off a tree while one, with its relationship, is worth less than the relationship costs."""
    while chosen:
        degree = np.bincount(field.ends[chosen].ravel(), minlength=len(field.nodes))
        gain: dict[int, float] = {}
        for at in chosen:
            for node in field.ends[at][degree[field.ends[at]] == 1].tolist():
                gain[at] = min(
                    gain.get(at, np.inf), field.node_prizes[node] + field.relationship_prizes[at] - field.cost
                )
        worst = min(gain, key=lambda at: (gain[at], at))
        if gain[worst] >= 0:
            break
        chosen = [at for at in chosen if at != worst]
    return chosen


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
