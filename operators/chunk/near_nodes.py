"""NearNodes: of the chunks that nodes occur in, those nearest to the question (KET-RAG's keyword channel)."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather
from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.pipeline.rows import NOTHING, Firsts, best, merge, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Nodes
from graphrag_bench.registry import operator


@operator("chunk.near_nodes")
def near_nodes(
    graph: Graph,
    questions: Questions,
    nodes: Nodes,
    vectors: ChunkVectors,
    *,
    candidates: int = 40,
    top_k: int | None = None,
) -> Chunks:
    """Collect the chunks of the given nodes, and rank them by their cosine with the question.

    Node by node, and a node's chunks by falling cosine, until ``candidates`` chunks have come. So the nodes say which chunks
    are looked at, and the chunks themselves which of them stand first.

    Args:
        graph: which node occurs in which chunk.
        questions: the batch.
        nodes: in order.
        vectors: the chunks' vectors.
        candidates: chunks to collect.
        top_k: chunks to keep.
    """
    held, firsts = graph.node_chunk, Firsts(graph.n_chunks)
    texts = questions.read("question")
    asked = iter(vectors.embedder.embed([text for row in texts for text in row], "query"))
    rows = []
    for row, text in zip(nodes, texts, strict=True):
        question = next(asked) if text else None
        origin, at = gather(held.indptr, row.ids)
        chunks = held.indices[at]
        if question is None or not len(chunks):
            rows.append(NOTHING)
            continue
        once, at = np.unique(chunks, return_inverse=True)
        near = (vectors.matrix[once].astype(np.float64) * question.astype(np.float64)).sum(axis=1).round(6)
        cosine = near[at]
        order = np.lexsort((chunks, -cosine, origin))
        found, score = merge(chunks[order], firsts, cosine[order])
        rows.append(best(found[:candidates], score[:candidates], top_k))
    return stack(Chunks, rows)
