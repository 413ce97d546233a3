"""OfNodes: the chunks that nodes occur in."""

from typing import Literal

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather
from graphrag_bench.pipeline.rows import Firsts, best, by_place, merge, stack
from graphrag_bench.pipeline.values import Chunks, Nodes
from graphrag_bench.registry import operator


@operator("chunk.of_nodes")
def of_nodes(
    graph: Graph, nodes: Nodes, *, rule: Literal["order", "sum", "max"] = "order", top_k: int | None = None
) -> Chunks:
    """Take the chunks in which the given nodes occur.

    By ``order`` the chunks of the first node come first, one node's by id; the score is one over the place, and the chunks
    that one node brings share theirs. By ``sum`` and ``max`` a chunk scores the sum or the best of its nodes' scores.

    Args:
        graph: which node occurs in which chunk.
        nodes: in order.
        rule: what orders the chunks.
        top_k: chunks to keep.
    """
    held = graph.node_chunk
    firsts = Firsts(graph.n_chunks)
    rows = []
    for row in nodes:
        origin, at = gather(held.indptr, row.ids)
        chunks = held.indices[at]
        if rule == "order":
            chunks, place = merge(chunks, firsts, origin)
            rows.append(by_place(chunks, (place,), top_k))
        else:
            # the row stands best first, so the best score of a chunk is its first
            rows.append(best(*merge(chunks, firsts, row.scores[origin], "sum" if rule == "sum" else "first"), top_k))
    return stack(Chunks, rows)
