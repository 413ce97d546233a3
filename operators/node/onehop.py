"""Onehop over nodes: their neighbours."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, gather, marked, neighbours
from graphrag_bench.pipeline.rows import Array, Firsts, stack
from graphrag_bench.pipeline.values import Nodes, Relationships, Row
from graphrag_bench.registry import operator


@operator("node.onehop")
def onehop(
    graph: Graph,
    nodes: Nodes,
    relationships: Relationships | None = None,
    *,
    kinds: Kinds = FACTS,
    include_seeds: bool = False,
    top_k: int | None = None,
) -> Nodes:
    """Take the neighbours of the given nodes, N(S) without S; a neighbour scores as the best given node beside it.

    Args:
        graph: walked in both directions.
        nodes: S.
        relationships: if given, only these of the question are walked.
        kinds: the kinds of relationship that are walked.
        include_seeds: whether S is returned too, with the scores it has.
        top_k: nodes to keep.
    """
    around, allowed = neighbours(graph, kinds), None if relationships is None else marked(graph, kinds)
    firsts = Firsts(graph.n_nodes)
    rows = []
    for number, seeds in enumerate(nodes):
        if relationships is None or allowed is None:
            origin, at = gather(around.indptr, seeds.ids)
            found = around.nodes[at]
        else:
            ids = relationships.row(number).ids
            origin, found = _across(graph, seeds.ids, ids[allowed[ids]], firsts)
        rows.append(_row(graph.n_nodes, seeds, origin, found, firsts, include_seeds, top_k))
    return stack(Nodes, rows)


def _across(graph: Graph, seeds: Array, relationships: Array, firsts: Firsts) -> tuple[Array, Array]:
    """Return where the relationships lead from the seeds: the place of the seed, best first, and the node reached."""
    starts = np.concatenate([graph.sources[relationships], graph.targets[relationships]])
    ends = np.concatenate([graph.targets[relationships], graph.sources[relationships]])
    place = firsts(np.concatenate([seeds, starts]))[len(seeds) :]
    from_seed = np.flatnonzero(place < len(seeds))
    from_seed = from_seed[np.argsort(place[from_seed], kind="stable")]
    return place[from_seed], ends[from_seed]


def _row(
    n: int, seeds: Row, origin: Array, found: Array, firsts: Firsts, include_seeds: bool, top_k: int | None
) -> Row:
    """Return the nodes found, which stand in the order of their seeds, so that the first time is by the best seed."""
    count = len(seeds.ids)
    ids = np.concatenate([seeds.ids, found])
    first = firsts(ids) == np.arange(len(ids))
    first[:count] = include_seeds
    # seeds of one score form a group; (group, id) in one integer sorts by score, then by id
    group = np.cumsum(np.diff(seeds.scores, prepend=seeds.scores[:1]) != 0)
    keys = np.concatenate([group, group[origin]])[first] * n + ids[first]
    keys = np.sort(keys)[:top_k]
    scores = seeds.scores[np.flatnonzero(np.diff(group, prepend=-1))]
    return Row(keys % max(n, 1), scores[keys // max(n, 1)])
