"""VDB over chunks: dense retrieval."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator


def chunks(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many chunks are taken."""
    return scale.chunks if settings["top_k"] is None else min(scale.chunks, int(settings["top_k"]))


@operator("chunk.vdb", yields=chunks)
def vdb(questions: Questions, vectors: ChunkVectors, *, top_k: int | None = 20) -> Chunks:
    """Take the chunks whose vectors are nearest to the question's.

    Args:
        questions: the batch.
        vectors: the chunks' vectors.
        top_k: chunks a question; null ranks every chunk.
    """
    texts = questions.read("question")
    hits = iter(vectors.search([text for row in texts for text in row], len(vectors) if top_k is None else top_k))
    return Chunks.of_rows([next(hits) if row else ([], []) for row in texts])
