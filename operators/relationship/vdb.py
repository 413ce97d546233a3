"""VDB over relationships: those nearest to the question."""

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, marked
from graphrag_bench.index.allowed import search_allowed
from graphrag_bench.index.vectors import RelationshipVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import unite
from graphrag_bench.pipeline.values import Relationships
from graphrag_bench.registry import operator


@operator("relationship.vdb", needs=("relationship.name|relationship.description",))
def vdb(
    graph: Graph,
    questions: Questions,
    vectors: RelationshipVectors,
    *,
    by: By = "question",
    kinds: Kinds = FACTS,
    top_k: int = 20,
    min_similarity: float = -1.0,
) -> Relationships:
    """Take the relationships whose vectors are nearest to what is read of the question.

    Args:
        graph: the graph.
        questions: the batch.
        vectors: the relationships' vectors, of every kind.
        by: what of the question is looked up; of several texts the hits are united with their best score.
        kinds: the kinds of relationship that are taken.
        top_k: relationships a text.
        min_similarity: the least cosine that counts.
    """
    texts = questions.read(by)
    hits = search_allowed(vectors, [text for row in texts for text in row], top_k, marked(graph, kinds))
    return Relationships.of_rows(unite(texts, hits, min_similarity))
