"""TypedVDB: of the nodes of some types, those nearest to the question."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.allowed import search_allowed
from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import unite
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


@operator("node.typed_vdb", needs=("node.type",))
def typed_vdb(
    graph: Graph,
    questions: Questions,
    vectors: NodeVectors,
    *,
    types: list[str],
    but: bool = False,
    by: By = "question",
    top_k: int = 20,
    min_similarity: float = -1.0,
) -> Nodes:
    """Take the nodes of some types whose vectors are nearest to what is read of the question.

    Args:
        graph: whose nodes have types.
        questions: the batch.
        vectors: the nodes' vectors.
        types: the types, up to case.
        but: nodes of every type but these, instead.
        by: what of the question is looked up; of several texts the hits are united with their best score.
        top_k: nodes a text.
        min_similarity: the least cosine that counts.
    """
    wanted = {name.casefold() for name in types}
    of_type = np.array([kind.casefold() in wanted for kind in graph.column("nodes", "type")], bool)
    texts = questions.read(by)
    hits = search_allowed(vectors, [text for row in texts for text in row], top_k, of_type != but)
    return Nodes.of_rows(unite(texts, hits, min_similarity, shares=False))
