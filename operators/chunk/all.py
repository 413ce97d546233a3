"""All: every chunk of the corpus, for answers that read all source texts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.rows import NOTHING, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Row
from graphrag_bench.registry import operator


def chunks(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many chunks are taken."""
    return scale.chunks if settings["top_k"] is None else min(scale.chunks, int(settings["top_k"]))


@operator("chunk.all", yields=chunks)
def every(chunks: ChunkTable, questions: Questions, *, top_k: int | None = None) -> Chunks:
    """Take every chunk, all with score 1, so that they stand in the corpus's order.

    Args:
        chunks: the corpus.
        questions: the batch.
        top_k: chunks to keep, from the beginning of the corpus.
    """
    row = Row(np.arange(len(chunks), dtype=np.int64)[:top_k], np.ones(len(chunks))[:top_k])
    return stack(Chunks, [NOTHING if number in questions.failed else row for number in range(questions.size)])
