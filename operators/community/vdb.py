"""VDB over communities: those whose reports are nearest to the question."""

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.reported import reported
from graphrag_bench.index.allowed import search_allowed
from graphrag_bench.index.vectors import CommunityVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import unite
from graphrag_bench.pipeline.values import Communities
from graphrag_bench.registry import operator


@operator("community.vdb", needs=("community", "community.report"))
def vdb(
    graph: Graph,
    questions: Questions,
    vectors: CommunityVectors,
    *,
    by: By = "question",
    max_level: int | None = None,
    top_k: int = 4,
    min_similarity: float = -1.0,
) -> Communities:
    """Take the communities whose reports' vectors are nearest to the question's; one without a report is never taken.

    Args:
        graph: with communities and reports.
        questions: the batch.
        vectors: the reports' vectors.
        by: what of the question is looked up; of several texts the hits are united with their best score.
        max_level: the finest level that is taken, 0 being the coarsest; null takes all.
        top_k: communities a text.
        min_similarity: the least cosine that counts.
    """
    texts = questions.read(by)
    hits = search_allowed(vectors, [text for row in texts for text in row], top_k, reported(graph, max_level))
    return Communities.of_rows(unite(texts, hits, min_similarity))
