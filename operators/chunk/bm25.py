"""BM25 over chunks: lexical retrieval."""

from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator


@operator("chunk.bm25")
def bm25(questions: Questions, index: LexicalIndex, *, top_k: int = 20) -> Chunks:
    """Take the chunks that share the question's rare words.

    Args:
        questions: the batch.
        index: the lexical index over the chunks.
        top_k: chunks a question at most; a chunk without a shared word is never taken.
    """
    texts = questions.read("question")
    hits = iter(index.search([text for row in texts for text in row], top_k))
    return Chunks.of_rows([next(hits) if row else ([], []) for row in texts])
