"""Otherwise: a second ranking where the first has nothing."""

from graphrag_bench.pipeline.rows import stack
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator


@operator("chunk.otherwise")
def otherwise(first: Chunks, second: Chunks, *, top_k: int | None = None) -> Chunks:
    """Take each question's chunks from the first ranking, or from the second where the first has none.

    Args:
        first: what counts.
        second: what a question falls back on, as HippoRAG 2 does on dense retrieval where no fact survives.
        top_k: chunks to keep.
    """
    united = stack(Chunks, [one if len(one.ids) else two for one, two in zip(first, second, strict=True)])
    return united if top_k is None else united.top(top_k)
