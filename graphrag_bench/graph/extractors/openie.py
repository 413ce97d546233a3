"""Extraction read from the dataset: the entities and triples somebody else's model found."""

from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.data.types import GivenOpenIE
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import Extraction, Triple, clean
from graphrag_bench.registry import register


@register("extractor", "openie")
async def read(chunks: ChunkTable, given: GivenOpenIE) -> Extraction:
    """Give each chunk the entities and triples the dataset holds for its documents.

    Where a document was cut into several chunks, a triple goes to the chunks that hold its subject or object, and to the
    document's first chunk when none does.
    """
    by_document = {row.document: row for row in given}
    pieces: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        for document in chunk.documents:
            pieces.setdefault(document, []).append(chunk)
    missing = [document for document in pieces if document not in by_document]
    if len(missing) == len(pieces):
        raise UserError(
            "The dataset's given triples speak of none of its documents.",
            "Check the passage ids of the openie file, or use graph.extractor=llm.",
        )
    entities: list[list[str]] = [[] for _ in chunks]
    triples: list[list[Triple]] = [[] for _ in chunks]
    for document, parts in pieces.items():
        row = by_document.get(document)
        if row is None:
            continue
        for name in row.entities:
            for chunk in _holding(parts, name):
                entities[chunk.id].append(name)
        for triple in row.triples:
            for chunk in _holding(parts, triple[0], triple[2]):
                triples[chunk.id].append(triple)
    rows = [clean(names, found) for names, found in zip(entities, triples, strict=True)]
    absent = {
        chunk.id: "missing: the dataset gives no triples for it"
        for chunk in chunks
        if all(document not in by_document for document in chunk.documents)
    }
    return Extraction(tuple(row[0] for row in rows), tuple(row[1] for row in rows), absent)


def _holding(parts: list[Chunk], *names: str) -> list[Chunk]:
    if len(parts) == 1:
        return parts
    wanted = [name.casefold() for name in names]
    return [part for part in parts if any(name in part.text.casefold() for name in wanted)] or parts[:1]
