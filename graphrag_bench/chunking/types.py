"""Chunks: what the corpus is cut into."""

from dataclasses import dataclass
from typing import TypeAlias

from graphrag_bench.data.types import Document

Documents: TypeAlias = tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of the corpus, the text that is indexed and put into a context.

    Attributes:
        id: Its position among the chunks, from 0.
        text: The text, its title's line included where titles are prepended.
        title: The title of the (first) document it comes from.
        documents: The ids of the documents it comes from; several where exact duplicates were merged.
        tokens: The number of tokens of ``text``, by the tokenizer that cut it.
    """

    id: int
    text: str
    title: str
    documents: tuple[str, ...]
    tokens: int


ChunkTable: TypeAlias = tuple[Chunk, ...]
