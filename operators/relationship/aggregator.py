"""Aggregator over relationships: a relationship scores the sum of its two ends."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather, incident
from graphrag_bench.pipeline.rows import Firsts, best, merge, stack, whole
from graphrag_bench.pipeline.values import Nodes, Relationships, Row, Scores
from graphrag_bench.registry import operator

_FEW = 8  # where fewer than one node in so many has a score, only the facts at those nodes are looked at


@operator("relationship.aggregator", needs=("relationship.name|relationship.description",))
def aggregator(graph: Graph, nodes: Nodes, *, top_k: int | None = None) -> Relationships:
    """Score every fact by the scores of its two ends, r(u, v) = s(u) + s(v).

    Args:
        graph: whose facts are scored; other kinds of relationship are not.
        nodes: node scores, as Personalised PageRank makes them.
        top_k: relationships to keep; null keeps all with a score.
    """
    dense = whole(nodes)
    if dense is None and len(nodes.ids) * _FEW < nodes.size * graph.n_nodes:
        return _at_few(graph, nodes, top_k)
    return _at_all(graph, nodes.dense(graph.n_nodes) if dense is None else dense, top_k)


def _at_few(graph: Graph, nodes: Nodes, top_k: int | None) -> Relationships:
    touching = incident(graph)
    firsts = Firsts(graph.n_relationships)
    rows = []
    for row in nodes:
        origin, at = gather(touching.indptr, row.ids)
        scores = row.scores[origin]
        scores[touching.others[at] == row.ids[origin]] *= 2  # a loop, which stands here once, has its node at both ends
        ids, scores = merge(touching.relationships[at], firsts, scores, "sum")
        rows.append(best(ids[scores != 0], scores[scores != 0], top_k))
    return stack(Relationships, rows)


def _at_all(graph: Graph, dense: Scores, top_k: int | None) -> Relationships:
    facts = graph.facts
    sources, targets = graph.sources[facts], graph.targets[facts]
    if top_k is None:
        out = np.zeros((len(dense), graph.n_relationships))
        for scores, row in zip(out, dense, strict=True):  # row by row: a question's node scores stay in the cache
            scores[facts] = row[sources] + row[targets]
        return Relationships.of_dense(out)
    rows: list[Row] = []
    for row in dense:
        scores = row[sources] + row[targets]
        some = np.flatnonzero(scores)
        rows.append(best(facts[some], scores[some], top_k))
    return stack(Relationships, rows)
