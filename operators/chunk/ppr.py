"""PPR over chunks: Personalised PageRank over entities and passages together, read at the passages (HippoRAG 2, KAG)."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.passages import unit_range, with_passages
from graphrag_bench.graph.walks import personalised_pagerank
from graphrag_bench.pipeline.rows import best, stack
from graphrag_bench.pipeline.values import Chunks, Nodes, Row
from graphrag_bench.registry import operator

_CELLS = 1 << 24  # of a block of restart vectors


@operator("chunk.ppr")
def ppr(
    graph: Graph,
    nodes: Nodes,
    chunks: Chunks | None = None,
    *,
    damping: float = 0.5,
    weighted: bool = True,
    passage_edge: float = 0.5,
    passage_weight: float = 0.05,
    top_k: int | None = None,
) -> Chunks:
    """Rank chunks by Personalised PageRank over a graph in which each chunk is joined to the nodes that occur in it.

    The walk restarts at the nodes by their scores, and at the given chunks by theirs, brought to 0 … 1 over the question's
    chunks and weighed down. A question without a node to begin at has no chunk: what is found without the graph is another
    operator's to say.

    Args:
        graph: walked undirected, every kind of relationship, parallel ones merged.
        nodes: where the walk restarts; negative scores count as none.
        chunks: passages at which it restarts too (HippoRAG 2 gives all, by dense retrieval).
        damping: the probability to follow an edge.
        weighted: whether the relationships' weights count.
        passage_edge: what the edge between a passage and an entity in it weighs.
        passage_weight: what the best given passage weighs beside the nodes' scores.
        top_k: chunks to keep; null keeps every chunk the walk reaches.
    """
    n, size = graph.n_nodes, graph.n_nodes + graph.n_chunks
    adjacency = with_passages(graph, weighted, passage_edge)
    rows = [Row(np.empty(0, np.int64), np.empty(0))] * len(nodes)
    begun = [number for number, row in enumerate(nodes) if (row.scores > 0).any()]
    block = max(32, _CELLS // max(size, 1))
    for start in range(0, len(begun), block):
        numbers = begun[start : start + block]
        restart = np.zeros((len(numbers), size))
        for seeds, number in zip(restart, numbers, strict=True):
            seeds[nodes.row(number).ids] = np.maximum(nodes.row(number).scores, 0.0)
            if chunks is not None and len(ids := chunks.row(number).ids):
                scores = chunks.row(number).scores
                seeds[n + ids] = passage_weight * unit_range(scores, scores[-1], scores[0])
        for number, scores in zip(numbers, personalised_pagerank(adjacency, restart, damping)[:, n:], strict=True):
            reached = np.flatnonzero(scores)
            rows[number] = best(reached, scores[reached], top_k)
    return stack(Chunks, rows)
