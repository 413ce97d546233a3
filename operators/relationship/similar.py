"""Similar: given relationships, ranked by how near they are to the question."""

import numpy as np

from graphrag_bench.index.vectors import RelationshipVectors
from graphrag_bench.pipeline.rows import NOTHING, best, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from graphrag_bench.registry import operator


@operator("relationship.similar", needs=("relationship.name|relationship.description",))
def similar(
    questions: Questions, vectors: RelationshipVectors, relationships: Relationships, *, top_k: int | None = 10
) -> Relationships:
    """Rank the given relationships by cosine with the question: KAG's fuzzy match of a step's predicate.

    Args:
        questions: the batch; wired, another wording of it.
        vectors: the relationships' vectors.
        relationships: what is ranked.
        top_k: relationships to keep.
    """
    texts = questions.read("question")
    asked = iter(vectors.embedder.embed([text for row in texts for text in row], "query").astype(np.float64))
    rows = []
    for text, row in zip(texts, relationships, strict=True):
        if not text:  # the question has failed
            rows.append(NOTHING)
            continue
        cosines = (vectors.matrix[row.ids].astype(np.float64) * next(asked)).sum(axis=1).round(6)
        rows.append(best(row.ids, cosines, top_k))
    return stack(Relationships, rows)
