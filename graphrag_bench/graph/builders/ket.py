"""KET-RAG's index: a skeleton of described entities from the most central chunks, and keywords that stand in every chunk."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from scipy import sparse

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.described import TKG, build_described
from graphrag_bench.graph.extraction import RichExtraction
from graphrag_bench.graph.keywords import keywords_of
from graphrag_bench.graph.records import Describe, Merge, Options, Parallel, Weight
from graphrag_bench.graph.summaries import PROMPTS, merge_calls
from graphrag_bench.graph.tree.settings import check
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.registry import register

KEYWORD = "keyword"


def spends(settings: Mapping[str, Any]) -> bool:
    """Say whether the model is asked: to merge long descriptions; keywords never cost a token."""
    return bool(settings["merge"] == "model")


@register("builder", "ket", version=1, provides=TKG, prompts=PROMPTS, spends=spends, calls=merge_calls)
async def build(
    chunks: ChunkTable,
    extraction: RichExtraction,
    embedder: Embedder,
    model: ChatModel | None,
    *,
    keywords_per_chunk: int | None = None,
    keyword_sentences: int = 3,
    parallel: Parallel = "keep",
    weight: Weight = "strength",
    describe: Describe = "none",
    described_triples: int = 12,
    merge: Merge = "model",
    summary_threshold: int = 500,
    summary_tokens: int = 500,
) -> Built:
    """Build KET-RAG's two indexes in one graph (Huang, Zhang and Xiao, 2025).

    The skeleton is the tkg of what was extracted; the extractors ``skeleton`` and ``skeleton_openie`` read the most central
    chunks alone. Behind its nodes stand the keywords of all chunks, nodes of type "keyword", joined to the chunks they stand
    in and to nothing else. A keyword is described by sentences that have it, so that its vector is near to theirs; the
    authors take the mean of the vectors of all its sentences.

    Args:
        chunks: the corpus.
        extraction: entities and relations of the chunks of the skeleton.
        embedder: lent to the tkg, which makes no synonym edges here.
        model: merges long descriptions; not asked with merge=cut.
        keywords_per_chunk: a chunk's keywords at most, those of greatest TF-IDF weight; null for all its words but function
            words, as the authors have it.
        keyword_sentences: sentences that describe a keyword.
        parallel: this and what follows as of the builder ``tkg``.
        weight: what a relationship weighs.
        describe: what becomes of what has no description.
        described_triples: triples in a description made so, at most.
        merge: a description that is too long is merged by the model, or cut.
        summary_threshold: tokens from which it is.
        summary_tokens: room for a merged description.

    Raises:
        UserError: No entity has a description and none is to be made, or a setting is below 1.
    """
    check(least={}, keywords_per_chunk=keywords_per_chunk, keyword_sentences=keyword_sentences)
    options = Options(parallel, weight, describe, described_triples, merge, summary_threshold, summary_tokens, None, 1)
    base = await build_described(chunks, extraction, embedder, model, options, TKG)
    graph = base.graph
    words, said, held = keywords_of([chunk.text for chunk in chunks], keywords_per_chunk, keyword_sentences)
    names, types, described = (graph.column("nodes", name) for name in ("name", "type", "description"))
    nodes = {"name": [*names, *words], "type": [*types, *([KEYWORD] * len(words))], "description": [*described, *said]}
    joined = replace(
        graph,
        nodes=pa.table({name: pa.array(column, pa.string()) for name, column in nodes.items()}),
        node_chunk=sparse.csr_array(sparse.vstack([graph.node_chunk, held], format="csr")),
    )
    rows = zip(extraction.entities, extraction.relations, strict=True)
    read = sum(bool(entities or relations) for entities, relations in rows)
    facts = {"skeleton_chunks": read, "keywords": len(words), "keyword_links": int(held.nnz)}
    return Built(joined, {**base.facts, **facts}, base.failed)
