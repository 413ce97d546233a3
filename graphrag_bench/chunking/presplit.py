"""Corpora that come as passages: one chunk a document."""

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable, Documents
from graphrag_bench.chunking.windows import check_windows, make_chunks, pieces, windows
from graphrag_bench.registry import register


@register("chunker", "presplit")
def presplit(
    documents: Documents,
    *,
    max_tokens: int | None = None,
    overlap: int = 100,
    tokenizer: str = "regex",
    prepend_title: bool = True,
) -> ChunkTable:
    """Take each document as one chunk; exact duplicates merge and keep all their documents.

    Args:
        documents: The corpus.
        max_tokens: A document of more tokens is cut into windows of this size; None never cuts.
        overlap: Tokens shared by such windows.
        tokenizer: ``regex``, ``minilm``, ``cl100k``, ``o200k`` or a path; see ``load_tokenizer``.
        prepend_title: Put the title and a line break before each chunk, where the document has one.

    Raises:
        UserError: ``max_tokens`` and ``overlap`` make no windows, or the tokenizer is unknown.
    """
    cutter = load_tokenizer(tokenizer)
    if max_tokens is None:
        return make_chunks(((document, document.text) for document in documents), cutter, prepend_title)
    check_windows(max_tokens, overlap, "drop")
    cut = (
        (document, piece)
        for document in documents
        for piece in pieces(document.text, windows(document.text, cutter, max_tokens, overlap))
    )
    return make_chunks(cut, cutter, prepend_title)
