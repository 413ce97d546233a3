"""VDB over nodes: those nearest to the question."""

from typing import Literal

from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import unite
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


@operator("node.vdb")
def vdb(
    questions: Questions,
    vectors: NodeVectors,
    *,
    by: By = "question",
    weight: Literal["similarity", "share"] = "similarity",
    top_k: int = 20,
    min_similarity: float = -1.0,
) -> Nodes:
    """Take the nodes whose vectors are nearest to what is read of the question.

    Args:
        questions: the batch.
        vectors: the nodes' vectors.
        by: what of the question is looked up; of several texts, as entities are, the hits are united with their best score.
        weight: score nodes by cosine, or by their share among the hits of their text (fast-graphrag).
        top_k: nodes a text.
        min_similarity: the least cosine that counts.
    """
    texts = questions.read(by)
    hits = vectors.search([text for row in texts for text in row], top_k)
    return Nodes.of_rows(unite(texts, hits, min_similarity, shares=weight == "share"))
