"""Aggregator over chunks: a chunk scores the sum of the relationships found in it."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.values import Chunks, Relationships
from graphrag_bench.registry import operator


@operator("chunk.aggregator")
def aggregator(graph: Graph, relationships: Relationships, *, top_k: int | None = None) -> Chunks:
    """Score every chunk by the relationships extracted from it, Ψ = R · M with M the relationship-chunk incidence.

    Args:
        graph: which relationship was found in which chunk.
        relationships: relationship scores.
        top_k: chunks to keep; null keeps all with a score.
    """
    scores = relationships.dense(graph.n_relationships)
    return Chunks.of_dense(np.asarray(scores @ graph.relationship_chunk), top_k)
