"""Link over relationships: the facts nearest to the question, scored by where they stand among all facts (HippoRAG 2)."""

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, marked
from graphrag_bench.graph.passages import unit_range
from graphrag_bench.index.allowed import search_allowed
from graphrag_bench.index.vectors import RelationshipVectors
from graphrag_bench.pipeline.rows import NOTHING, best, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from graphrag_bench.registry import operator

_BLOCK = 1 << 16  # vectors looked at together
_SLACK = 2e-6  # a single-precision product differs by less from batch to batch


@operator("relationship.link", needs=("relationship.name|relationship.description",))
def link(
    graph: Graph, questions: Questions, vectors: RelationshipVectors, *, kinds: Kinds = FACTS, top_k: int = 5
) -> Relationships:
    """Take the relationships nearest to the question; the farthest of the graph scores 0 and the nearest 1.

    `relationship.vdb` with another score: cosines of one embedder lie close together and high, of another low; brought to
    the question's own range they can be weighed against other scores.

    Args:
        graph: the graph.
        questions: the batch.
        vectors: the relationships' vectors, of every kind.
        kinds: the kinds of relationship that are linked, and among which the range is taken.
        top_k: relationships a question.
    """
    allowed = marked(graph, kinds)
    texts = questions.read("question")
    asked = [text for row in texts for text in row]
    hits = iter(search_allowed(vectors, asked, top_k, allowed))
    lowest = iter(_lowest(vectors, vectors.embedder.embed(asked, "query"), np.flatnonzero(allowed)))
    rows = []
    for text in texts:
        if text:
            (ids, cosines), low = next(hits), float(next(lowest))
            rows.append(best(ids, unit_range(cosines, low, cosines[0])) if len(ids) else NOTHING)
        else:
            rows.append(NOTHING)
    return stack(Relationships, rows)


def _lowest(vectors: RelationshipVectors, queries: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each query's lowest cosine, to the places that hits have; the few that can be it in double precision."""
    lowest = np.full(len(queries), np.inf)
    for start in range(0, len(ids), _BLOCK):
        part = vectors.matrix[ids[start : start + _BLOCK]]
        scores = queries @ part.T
        low = scores <= scores.min(axis=1, keepdims=True) + _SLACK
        for row, (query, near) in enumerate(zip(queries, low, strict=True)):
            exact = (part[near].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
            lowest[row] = min(lowest[row], exact.min())
    return lowest.round(6)
