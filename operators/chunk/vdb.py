"""VDB over chunks: dense retrieval."""

from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator


@operator("chunk.vdb")
def vdb(questions: Questions, vectors: ChunkVectors, *, top_k: int = 20) -> Chunks:
    """Take the chunks whose vectors are nearest to the question's.

    Args:
        questions: the batch.
        vectors: the chunks' vectors.
        top_k: chunks a question.
    """
    texts = questions.read("question")
    hits = iter(vectors.search([text for row in texts for text in row], top_k))
    return Chunks.of_rows([next(hits) if row else ([], []) for row in texts])
