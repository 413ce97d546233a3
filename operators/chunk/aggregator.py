"""Aggregator over chunks: a chunk scores the sum of the relationships found in it."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.rows import whole
from graphrag_bench.pipeline.values import Chunks, Relationships
from graphrag_bench.registry import operator


@operator("chunk.aggregator", needs=("relationship.name|relationship.description",))
def aggregator(graph: Graph, relationships: Relationships, *, top_k: int | None = None) -> Chunks:
    """Score every chunk by the relationships extracted from it, Ψ = R · M with M the relationship-chunk incidence.

    Args:
        graph: which relationship was found in which chunk.
        relationships: relationship scores.
        top_k: chunks to keep; null keeps all with a score.
    """
    dense = whole(relationships)
    if dense is None:
        return Chunks.of_csr(relationships.csr(graph.n_relationships) @ graph.relationship_chunk, top_k)
    found_in = graph.relationship_chunk.astype(np.float64).T
    scores = np.empty((len(dense), graph.n_chunks))
    for row, given in zip(scores, dense, strict=True):  # one question's chunk scores stay in the cache
        row[:] = found_in @ given
    return Chunks.of_dense(scores, top_k)
