"""What a graph is like: how finely its layers are divided, how clustered it is, and how much of a walk its bridges cover."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.hierarchical.sparsity import change_rates, cluster_sparsity
from graphrag_bench.graph.incident import FACTS, Kinds, neighbours
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Subgraphs

__all__ = [
    "Coverage",
    "LayerSparsity",
    "bridge_coverage",
    "change_rates",
    "cluster_sparsity",
    "global_clustering",
    "sparsity_by_layer",
]


class LayerSparsity(NamedTuple):
    """One layer that was summed up.

    Attributes:
        layer: counted up from the entities, which are 0.
        nodes: those of the layer: its summaries, and what was passed up to it.
        clusters: of two or more nodes.
        sparsity: see `cluster_sparsity`.
        change: against the layer before; None for the first.
    """

    layer: int
    nodes: int
    clusters: int
    sparsity: float
    change: float | None


def sparsity_by_layer(graph: Graph) -> list[LayerSparsity]:
    """Return the cluster sparsity of each layer and its change (HiRAG, Figure 4), read from a graph with ``node.layer``.

    A cluster is what one summary, or several, have as members; a node that no summary of the next layer has was passed up.
    The layer at which a builder stopped has no summaries, and is only in the builder's facts; clusters that could not be
    summed up are missing.

    Args:
        graph: with ``node.layer`` and relationships of kind ``member``, from summary to member.
    """
    if "node.layer" not in graph.attributes:
        raise ValueError("the graph has no layers")
    layer = np.asarray(graph.nodes["layer"].to_numpy(), np.int64)
    members: dict[int, list[int]] = defaultdict(list)
    for relationship in graph.of_kinds(["member"]).tolist():
        members[int(graph.sources[relationship])].append(int(graph.targets[relationship]))
    clusters: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for summary, nodes in members.items():
        clusters[int(layer[summary])].add(tuple(sorted(nodes)))
    current = set(np.flatnonzero(layer == 0).tolist())
    rows: list[tuple[int, int, float]] = []
    for number in range(1, int(layer.max(initial=0)) + 1):
        found = clusters[number]
        rows.append((len(current), len(found), cluster_sparsity(map(len, found), len(current))))
        current = current.difference(*found) | set(np.flatnonzero(layer == number).tolist())
    changes = change_rates([row[2] for row in rows])
    return [LayerSparsity(at, *row, change) for at, (row, change) in enumerate(zip(rows, changes, strict=True))]


def global_clustering(graph: Graph, kinds: Kinds = FACTS) -> float:
    """Return the global clustering coefficient, or transitivity: the closed share of all paths of length two.

    Of the undirected simple view of the relationships of some kinds; 0 where there is no path of length two.
    """
    import igraph

    around = neighbours(graph, kinds)
    owner = np.repeat(np.arange(graph.n_nodes), around.degrees)
    once = owner < around.nodes
    simple = igraph.Graph(n=graph.n_nodes, edges=np.column_stack([owner[once], around.nodes[once]]))
    return float(simple.transitivity_undirected(mode="zero"))


class Coverage(NamedTuple):
    """How much of what bridges were to join they do join; shares are 0 where there was nothing to join.

    Attributes:
        pairs: successive key nodes, all questions together.
        joined: the share of them that a path joins.
        keys: the share of key nodes that lie on a path.
        hops: relationships on a path, on average.
        between: nodes on the paths that are no key, a question.
    """

    pairs: int
    joined: float
    keys: float
    hops: float
    between: float

    def plain(self) -> dict[str, Any]:
        """Return it for a record, shares to six digits."""
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in self._asdict().items()}


def bridge_coverage(keys: Nodes, bridges: Subgraphs) -> Coverage:
    """Return how far the bridges cover the key nodes they were asked to join, in the order of the keys (cf. HiRAG, Table 7).

    Args:
        keys: the key nodes of each question, in order.
        bridges: the paths between successive ones.
    """
    pairs = joined = nodes = covered = hops = paths = between = 0
    for row, found in zip(keys, bridges.rows, strict=True):
        ids: Sequence[int] = row.ids.tolist()
        wanted = set(pairwise(ids))
        on = {node for path in found for node in path.nodes}
        pairs += len(wanted)
        joined += len(wanted & {(path.nodes[0], path.nodes[-1]) for path in found})
        nodes += len(ids)
        covered += len(on.intersection(ids))
        between += len(on.difference(ids))
        hops += sum(len(path.relationships) for path in found)
        paths += len(found)
    questions = len(keys)
    return Coverage(
        pairs,
        joined / pairs if pairs else 0.0,
        covered / nodes if nodes else 0.0,
        hops / paths if paths else 0.0,
        between / questions if questions else 0.0,
    )
