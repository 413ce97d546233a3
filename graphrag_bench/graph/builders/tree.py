"""The tree of RAPTOR: soft clusters of texts, layer by layer, a summary each."""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.tree.clustering import GlobalThenLocal
from graphrag_bench.graph.tree.layers import PROVIDES, Shape, grow
from graphrag_bench.graph.tree.mixture import Membership, Mixture
from graphrag_bench.graph.tree.projection import Reduction, need
from graphrag_bench.graph.tree.settings import check, writer
from graphrag_bench.graph.tree.summaries import PROMPTS, summary_calls, tree_size
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.registry import register

_MEMBERS = 5  # of a cluster: rather too few; 6.7 in the paper (Sarthi et al., 2024), 5.8 to 7.7 on MuSiQue's 1,890 passages


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a summary for every five nodes, layer by layer; how many components fit best cannot be known before."""
    return summary_calls(settings, scale, _MEMBERS, "about")


@register(
    "builder",
    "tree",
    version=1,
    provides=PROVIDES,
    prompts=PROMPTS,
    spends=lambda settings: settings["summary"] == "model",
    calls=calls,
    size=lambda settings, scale: tree_size(calls(settings, scale).calls, scale),
)
async def build(
    chunks: ChunkTable,
    model: ChatModel,
    embedder: Embedder,
    *,
    membership: Membership = "soft",
    threshold: float = 0.1,
    reduction: Reduction = "umap",
    dimensions: int = 10,
    max_components: int = 49,
    bic_points: int = 5000,
    max_layers: int = 5,
    stop_size: int = 11,
    max_cluster_tokens: int | None = 3500,
    max_depth: int = 5,
    summary: Literal["model", "extractive"] = "model",
    summary_tokens: int = 100,
    tokenizer: str = "regex",
    seed: int = 224,
) -> Built:
    """Build RAPTOR's tree (Sarthi et al., 2024): leaves are the chunks, and a summary node joins each cluster of nodes.

    A layer's vectors are projected by UMAP (cosine, ⌊√(n-1)⌋ neighbours) and divided by a Gaussian mixture with the number
    of components of least BIC; inside each cluster of more than ``dimensions`` + 1 nodes the same again with 10 neighbours.
    A node may have several parents. Unlike the original: UMAP is seeded, equal texts stay different nodes, a node without
    any posterior above the threshold is not lost, single-node clusters are passed up and not summarised, a failed summary
    is recorded and its members are passed up, and re-clustering is bounded. Vectors are those of the texts as they
    stand, shared with the chunks' own.

    Args:
        chunks: the leaves.
        model: writes the summaries.
        embedder: embeds leaves and summaries.
        membership: a node belongs to every cluster above the threshold (soft), or to the most probable one (hard).
        threshold: that posterior.
        reduction: by UMAP; by principal components, without that library; or none, for vectors of few dimensions (the
            mixtures' covariances are then diagonal).
        dimensions: dimensions to project to.
        max_components: components a mixture may have.
        bic_points: with more nodes, the number of components is looked for on a sample of so many.
        max_layers: layers of summaries at most.
        stop_size: a layer of at most so many nodes is the top.
        max_cluster_tokens: a cluster of longer texts is clustered again, and packed where that does not help; null for
            no bound.
        max_depth: how often a cluster is clustered again.
        summary: written by the model, or extracted (the sentences nearest to the cluster's centroid), without a token.
        summary_tokens: tokens of a summary at most.
        tokenizer: counts the tokens of clusters and extracts; see ``load_tokenizer``.
        seed: seeds UMAP and the mixtures.
    """
    check(max_layers=max_layers, stop_size=stop_size, dimensions=dimensions, max_components=max_components,
          bic_points=bic_points, max_cluster_tokens=max_cluster_tokens, summary_tokens=summary_tokens,
          least={"dimensions": 2, "max_depth": 0}, max_depth=max_depth)  # fmt: skip
    if not 0 < threshold < 1:
        raise UserError(f"graph.threshold is {threshold}.", "Write a probability between 0 and 1; RAPTOR's is 0.1.")
    need(reduction)
    counter = load_tokenizer(tokenizer)
    covariance: Literal["full", "diag"] = "diag" if reduction == "none" else "full"
    mixture = Mixture(max_components, threshold, membership, bic_points, seed, covariance)
    step = GlobalThenLocal(mixture, reduction, dimensions, seed)
    shape = Shape(max_layers, stop_size, max_cluster_tokens, max_depth)
    return await grow(chunks, embedder, counter, step, writer(summary, chunks, counter, model, summary_tokens), shape)
