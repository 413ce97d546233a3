"""Link: one node for each entity the question names."""

from typing import Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import unite
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


@operator("node.link", needs=("node.name",))
def link(
    graph: Graph,
    questions: Questions,
    vectors: NodeVectors,
    *,
    by: By = "entities",
    weight: Literal["similarity", "specificity", "share"] = "similarity",
    top_k: int = 1,
    min_similarity: float = -1.0,
) -> Nodes:
    """Take for each entity of the question its most similar node; two entities on one node keep the better score.

    Args:
        graph: the graph.
        questions: the batch.
        vectors: the nodes' vectors.
        by: what of the question is linked.
        weight: score nodes by cosine; by HippoRAG's node specificity, 1 / (chunks that hold the node); or by their share
            among the hits of their entity (fast-graphrag).
        top_k: nodes an entity.
        min_similarity: below this cosine an entity stays unlinked.
    """
    mentions = questions.read(by)
    hits = vectors.search([text for row in mentions for text in row], top_k)
    rows = unite(mentions, hits, min_similarity, shares=weight == "share")
    if weight == "specificity":
        chunks_of = np.maximum(np.diff(graph.node_chunk.indptr), 1)
        rows = [(ids, 1.0 / chunks_of[ids]) for ids, _ in rows]
    return Nodes.of_rows(rows)
