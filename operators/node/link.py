"""Link: one node for each entity the question names."""

from typing import Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


@operator("node.link", needs=("node.name",))
def link(
    graph: Graph,
    questions: Questions,
    vectors: NodeVectors,
    *,
    by: By = "entities",
    weight: Literal["similarity", "specificity"] = "similarity",
    top_k: int = 1,
    min_similarity: float = -1.0,
) -> Nodes:
    """Take for each entity of the question its most similar node; two entities on one node keep the better score.

    Args:
        graph: the graph.
        questions: the batch.
        vectors: the nodes' vectors.
        by: what of the question is linked.
        weight: score nodes by cosine, or by HippoRAG's node specificity, 1 / (chunks that hold the node).
        top_k: nodes an entity.
        min_similarity: below this cosine an entity stays unlinked.
    """
    mentions = questions.read(by)
    hits = iter(vectors.search([text for row in mentions for text in row], top_k))
    chunks_of = np.maximum(np.diff(graph.node_chunk.indptr), 1)
    rows = []
    for row in mentions:
        found = [next(hits) for _ in row]
        ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in found)])
        scores = np.concatenate([np.empty(0), *(scores for _, scores in found)])
        ids, scores = ids[scores >= min_similarity], scores[scores >= min_similarity]
        rows.append((ids, scores if weight == "similarity" else 1.0 / chunks_of[ids]))
    return Nodes.of_rows(rows)
