"""HiRAG's hierarchical index: a graph of described entities, and layers of summary entities above it."""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.described import TKG, build_described
from graphrag_bench.graph.extraction import EntityRecord, RichExtraction
from graphrag_bench.graph.hierarchical.clustering import OneMixture
from graphrag_bench.graph.hierarchical.layered import layered
from graphrag_bench.graph.hierarchical.layers import Shape, grow
from graphrag_bench.graph.hierarchical.summaries import HASH, by_extracts, by_model, layer_calls
from graphrag_bench.graph.records import Describe, Merge, Options, Parallel, Weight
from graphrag_bench.graph.summaries import merge_calls
from graphrag_bench.graph.tree.mixture import Mixture
from graphrag_bench.graph.tree.projection import Reduction, need
from graphrag_bench.graph.tree.settings import check
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.registry import register

PROVIDES = (*TKG, "node.layer")
META_TYPES = [
    "organization", "person", "location", "event", "product", "technology", "industry", "mathematics", "social sciences",
]  # fmt: skip


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return the merges of long descriptions, and a call a cluster of each layer."""
    found = merge_calls(settings, scale) if settings["merge"] == "model" else Calls()
    return found + layer_calls(settings, scale) if settings["summary"] == "model" else found


@register(
    "builder",
    "hierarchical",
    version=1,
    provides=PROVIDES,
    prompts=HASH,
    spends=lambda settings: "model" in (settings["merge"], settings["summary"]),
    calls=calls,
)
async def build(
    chunks: ChunkTable,
    extraction: RichExtraction,
    embedder: Embedder,
    model: ChatModel | None,
    *,
    parallel: Parallel = "keep",
    weight: Weight = "strength",
    describe: Describe = "none",
    described_triples: int = 12,
    merge: Merge = "model",
    summary_threshold: int = 500,
    summary: Literal["model", "extractive"] = "model",
    summary_tokens: int = 120,
    max_summaries: int = 5,
    description_chars: int = 300,
    entity_types: list[str] = META_TYPES,
    max_change: float = 0.05,
    max_sparsity: float | None = None,
    max_layers: int = 50,
    stop_size: int = 2,
    max_components: int = 49,
    bic_points: int = 5000,
    threshold: float = 0.1,
    reduction: Reduction = "umap",
    dimensions: int = 2,
    neighbours: int = 15,
    max_cluster_tokens: int | None = 60000,
    max_depth: int = 5,
    tokenizer: str = "regex",
    seed: int = 0,
) -> Built:
    """Build HiRAG's index (Huang et al., 2025, section 4.1): a tkg, and above it layers of summary entities.

    A layer's nodes are projected by UMAP on the embeddings of their descriptions and divided by a Gaussian mixture with the
    number of components of least BIC; a node is in every cluster above the threshold. Each cluster of two or more nodes is
    summed up by a few entities of the meta types, which are the next layer, together with the nodes that are in no such
    cluster. A summary is linked (kind ``member``) to every node of its cluster, as the paper says; the repository links
    what the model names. Layers end where the sparsity of clusters changes by no more than ``max_change``; the facts have
    every layer's. Unlike the repository: UMAP is seeded, entities with equal descriptions stay different nodes, single
    nodes are passed up, and a cluster too large for a prompt is clustered again instead of sampled.

    Args:
        chunks: the corpus.
        extraction: entities and relations by chunk.
        embedder: embeds descriptions.
        model: merges long descriptions, and writes summary entities; not asked with merge=cut and summary=extractive.
        parallel: one relationship for each distinct statement about an ordered pair, or one for the pair; see tkg.
        weight: the sum of the statements' strengths, or how many statements there are.
        describe: where the extraction describes nothing, leave it empty or make it of names and triples; see tkg.
        described_triples: triples in a description made so, at most.
        merge: a description longer than summary_threshold is merged by the model, or cut.
        summary_threshold: tokens a description has at most before it is merged or cut, and of a merged one.
        summary: summary entities by the model; or extractive, without a token: one a cluster, called after its most central
            member, whose description is the first sentence of each member's, the most central first.
        summary_tokens: tokens a summary entity has room for.
        max_summaries: summary entities a cluster at most, and never more than half its members.
        description_chars: length of a summary entity's description at most; the schema says so.
        entity_types: the meta types: the types of summary entities that the model is told; "other" is always one. The
            extractor reads the same list, as in the repository.
        max_change: HiRAG's stop rule: a layer is summed up only where its cluster sparsity differs from the one before by
            more than this share of it.
        max_sparsity: a layer of at least this sparsity is not summed up (0.98 in the repository, beside the other rule).
        max_layers: layers of summaries at most.
        stop_size: a layer of at most so many nodes is the top.
        max_components: clusters a mixture may have.
        bic_points: with more nodes, the number of components is looked for on a sample of so many.
        threshold: posterior from above which a node is in a cluster.
        reduction: by UMAP; by principal components, without that library; or none.
        dimensions: dimensions to project to.
        neighbours: UMAP's.
        max_cluster_tokens: a cluster whose members take more tokens is clustered again, and packed where that does not help;
            null for no bound. The repository's number, which samples there. It decides how sparse a layer is, so it does not
            hang on a model's window: what a prompt has no room for is cut, member by member, and counted.
        max_depth: how often a cluster is clustered again.
        tokenizer: counts the tokens of extracts.
        seed: seeds UMAP and the mixtures.

    Raises:
        UserError: No entity has a description, a setting is out of its range, or no cluster could be summed up.
    """
    check(
        max_layers=max_layers, stop_size=stop_size, max_components=max_components, bic_points=bic_points,
        dimensions=dimensions, neighbours=neighbours, max_cluster_tokens=max_cluster_tokens, max_depth=max_depth,
        summary_tokens=summary_tokens, max_summaries=max_summaries, description_chars=description_chars,
        least={"dimensions": 2, "neighbours": 2, "max_depth": 0, "max_layers": 0, "description_chars": 40},
    )  # fmt: skip
    if max_change < 0:
        raise UserError(f"graph.max_change is {max_change}.", "Write a share of 0 or more; HiRAG's is 0.05.")
    if not 0 < threshold < 1:
        raise UserError(f"graph.threshold is {threshold}.", "Write a probability between 0 and 1; HiRAG's is 0.1.")
    if summary == "model" and model is None:
        raise UserError("graph.summary=model wants a model, and there is none.", "Set graph.summary=extractive.")
    need(reduction)
    options = Options(
        parallel, weight, describe, described_triples, merge, summary_threshold, summary_threshold, None, 1
    )
    base = await build_described(chunks, extraction, embedder, model, options, TKG)
    graph = base.graph
    table = (graph.column("nodes", name) for name in ("name", "type", "description"))
    entities = [EntityRecord(*row) for row in zip(*table, strict=True)]
    covariance: Literal["full", "diag"] = "diag" if reduction == "none" else "full"
    mixture = Mixture(max_components, threshold, "soft", bic_points, seed, covariance)
    step = OneMixture(mixture, reduction, dimensions, neighbours, seed)
    shape = Shape(max_change, max_sparsity, max_layers, stop_size, max_cluster_tokens, max_depth)
    if summary == "model" and model is not None:
        writer = by_model(model, entity_types, max_summaries, summary_tokens, description_chars)
    else:
        writer = by_extracts(load_tokenizer(tokenizer), summary_tokens)
    made = await grow(entities, embedder, step, writer, shape)
    higher = layered(graph, made.entities[len(entities) :], made.layer, made.members)
    return Built(higher, {**base.facts, **made.account()}, {**base.failed, **made.failed})
