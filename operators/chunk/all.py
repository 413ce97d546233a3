"""All: every chunk of the corpus, for answers that read all source texts."""

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.rows import NOTHING, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Row
from graphrag_bench.registry import operator


@operator("chunk.all")
def every(graph: Graph, questions: Questions, *, top_k: int | None = None) -> Chunks:
    """Take every chunk, all with score 1, so that they stand in the corpus's order.

    Args:
        graph: which chunks there are.
        questions: the batch.
        top_k: chunks to keep, from the beginning of the corpus.
    """
    row = Row(np.arange(graph.n_chunks, dtype=np.int64)[:top_k], np.ones(graph.n_chunks)[:top_k])
    return stack(Chunks, [NOTHING if number in questions.failed else row for number in range(questions.size)])
