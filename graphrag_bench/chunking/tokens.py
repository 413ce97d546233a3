"""Windows of a fixed number of tokens, the chunks of most graph-based methods."""

from typing import Literal

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable, Documents
from graphrag_bench.chunking.windows import check_windows, make_chunks, pieces, windows
from graphrag_bench.registry import register


@register("chunker", "tokens")
def tokens(
    documents: Documents,
    *,
    size: int = 1200,
    overlap: int = 100,
    tokenizer: str = "regex",
    tail: Literal["drop", "keep"] = "drop",
    prepend_title: bool = True,
) -> ChunkTable:
    """Cut each document into windows of ``size`` tokens that overlap by ``overlap``.

    Windows never cross documents and are slices of the original text. Exact duplicates merge and keep all documents.

    Args:
        documents: The corpus.
        size: Tokens a window, the prepended title not counted.
        overlap: Tokens shared by neighbouring windows.
        tokenizer: ``regex``, ``minilm``, ``cl100k``, ``o200k`` or a path; see ``load_tokenizer``.
        tail: Whether a last window that lies wholly inside the one before is dropped or kept.
        prepend_title: Put the title and a line break before each chunk, where the document has one.

    Raises:
        UserError: The settings make no windows, or the tokenizer is unknown.
    """
    check_windows(size, overlap, tail)
    cutter = load_tokenizer(tokenizer)
    cut = (
        (document, piece)
        for document in documents
        for piece in pieces(document.text, windows(document.text, cutter, size, overlap, tail))
    )
    return make_chunks(cut, cutter, prepend_title)
