"""Extraction from the most central chunks alone (KET-RAG's skeleton): by the model, or from what came with the data."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.data.types import GivenOpenIE
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.extraction import Extraction, RichExtraction
from graphrag_bench.graph.extractors import described, openie
from graphrag_bench.graph.skeleton import central_chunks
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.registry import register

_TYPES = ["organization", "person", "location", "event"]


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return the calls of the chunks that are chosen, as if they were of usual length."""
    chosen = int(np.ceil(settings["share"] * scale.chunks))
    return described.calls(settings, replace(scale, chunks=chosen, tokens=round(chosen * scale.chunk)))


@register("extractor", "skeleton", spends=True, prompts=described.PROMPTS, calls=calls)
async def extract(
    chunks: ChunkTable,
    embedder: Embedder,
    model: ChatModel,
    *,
    share: float = 0.8,
    nearest_chunks: int = 1,
    entity_types: list[str] = _TYPES,
    keywords: bool = False,
    gleaning: int = 1,
    max_entities: int = 16,
    max_relations: int = 16,
    description_chars: int = 300,
    record_tokens: int = 1536,
    gleaning_tokens: int = 512,
) -> RichExtraction:
    """Ask for the described entities and relations of the most central chunks; the others have none, and cost nothing.

    Args:
        chunks: the corpus.
        embedder: embeds the chunks.
        model: who reads.
        share: of the chunks to read (β; 0.8 in the repository).
        nearest_chunks: chunks of most shared words, and as many of greatest cosine, that a chunk is joined to.
        entity_types: this and what follows as of the extractor ``described``.
        keywords: ask for keywords of relations too.
        gleaning: rounds that ask for what was missed, at most.
        max_entities: entities a reply at most.
        max_relations: relations a reply at most.
        description_chars: length of a description at most.
        record_tokens: room for the first reply.
        gleaning_tokens: room for the reply of a round.
    """
    chosen = await asyncio.to_thread(central_chunks, chunks, embedder, share, nearest_chunks)
    found = await described.extract(
        tuple(chunks[number] for number in chosen.tolist()),
        model,
        entity_types=entity_types,
        keywords=keywords,
        gleaning=gleaning,
        max_entities=max_entities,
        max_relations=max_relations,
        description_chars=description_chars,
        record_tokens=record_tokens,
        gleaning_tokens=gleaning_tokens,
    )
    entities, relations = _placed(found.entities, chosen, len(chunks)), _placed(found.relations, chosen, len(chunks))
    failed = {int(chosen[number]): reason for number, reason in found.failed.items()}
    return RichExtraction(entities, relations, failed, found.cut)


@register("extractor", "skeleton_openie")
async def read(
    chunks: ChunkTable, embedder: Embedder, given: GivenOpenIE, *, share: float = 0.8, nearest_chunks: int = 1
) -> Extraction:
    """Give the most central chunks the entities and triples the dataset holds for them; the others have none.

    Args:
        chunks: the corpus.
        embedder: embeds the chunks.
        given: what came with the data.
        share: of the chunks to take.
        nearest_chunks: as of the extractor ``skeleton``.
    """
    chosen = await asyncio.to_thread(central_chunks, chunks, embedder, share, nearest_chunks)
    found = await openie.read(chunks, given)
    there = set(chosen.tolist())
    names = tuple(row if number in there else () for number, row in enumerate(found.entities))
    triples = tuple(row if number in there else () for number, row in enumerate(found.triples))
    failed = {number: reason for number, reason in found.failed.items() if number in there}
    return Extraction(names, triples, failed)


def _placed(rows: tuple[Any, ...], chosen: NDArray[np.int64], size: int) -> tuple[Any, ...]:
    """Return the rows of the chosen chunks among empty ones."""
    found: list[Any] = [()] * size
    for number, row in zip(chosen.tolist(), rows, strict=True):
        found[number] = row
    return tuple(found)
