"""The rich knowledge graph: a textual knowledge graph whose relations have keywords (LightRAG)."""

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.described import RKG, build_described
from graphrag_bench.graph.extraction import RichExtraction
from graphrag_bench.graph.records import Describe, Match, Merge, Options, Parallel, Weight
from graphrag_bench.graph.summaries import PROMPTS, merge_calls
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.registry import register


@register(
    "builder",
    "rkg",
    provides=RKG,
    prompts=PROMPTS,
    spends=lambda settings: settings["merge"] == "model",
    calls=merge_calls,
)
async def build(
    chunks: ChunkTable,
    extraction: RichExtraction,
    embedder: Embedder,
    model: ChatModel | None,
    *,
    keywords: bool = True,
    parallel: Parallel = "keep",
    weight: Weight = "strength",
    describe: Describe = "none",
    described_triples: int = 12,
    merge: Merge = "model",
    summary_threshold: int = 500,
    summary_tokens: int = 500,
    synonym_threshold: float | None = None,
    synonym_top_k: int = 100,
    match: Match = "exact",
    match_cosine: float = 0.85,
    match_spelling: float = 0.6,
) -> Built:
    """Build the graph of described entities and relations with keywords.

    A node is an entity's name up to case and punctuation (see ``match``); its name is the first spelling met, its type the
    most frequent (of equals, the first met), its description the distinct descriptions of all passages. Relationships
    keep direction.
    A relationship's keywords are those of all its statements, each once.

    Args:
        chunks: the corpus.
        extraction: entities and relations by chunk.
        embedder: embeds node names, for synonym edges.
        model: merges long descriptions; not asked with merge=cut.
        keywords: what the extractor is told; without keywords the graph is a tkg.
        parallel: one relationship for each distinct statement about an ordered pair (``keep``), or one for the pair, its
            descriptions joined (``merge``).
        weight: the sum of the statements' strengths, or how many statements there are. What a chunk says twice is said
            once there.
        describe: where the extraction describes nothing (triples without descriptions), leave it empty, or make it of
            names and triples: a node's is what its first triples say, a relationship's subject, predicate and object, its
            keywords the predicate's content words.
        described_triples: triples in a description made so, at most; summary_threshold bounds its tokens.
        merge: a description joined of many passages that is longer than summary_threshold is merged by the model, or
            cut (and no model is needed; what ``describe`` makes is never too long).
        summary_threshold: tokens a description has at most before it is merged or cut.
        summary_tokens: room for a merged description.
        synonym_threshold: cosine from which two names are joined by a synonym edge; null for no such edges.
        synonym_top_k: synonyms a node at most, its nearest.
        match: what makes two names one entity: that they are the same up to case and punctuation (as GraphRAG matches them),
            or also that they are alike (``soft``); then the more frequent name stands for both.
        match_cosine: of two names' embeddings, from which they may be alike.
        match_spelling: of two names' letters, 0 to 1, from which they may be alike; both are wanted.

    Raises:
        UserError: No entity has a description, or no relation a keyword, and none are to be made.
    """
    if not keywords:
        raise UserError("An rkg wants graph.keywords=true.", "Use graph=tkg for a graph without keywords.")
    options = Options(
        parallel,
        weight,
        describe,
        described_triples,
        merge,
        summary_threshold,
        summary_tokens,
        synonym_threshold,
        synonym_top_k,
        match,
        match_cosine,
        match_spelling,
    )
    return await build_described(chunks, extraction, embedder, model, options, RKG)
