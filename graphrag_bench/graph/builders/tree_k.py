"""The tree of RAPTOR-K: clusters of texts by k-means, layer by layer, a summary each."""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.tree.clustering import KMeansOf
from graphrag_bench.graph.tree.layers import PROVIDES, Shape, grow
from graphrag_bench.graph.tree.settings import check, writer
from graphrag_bench.graph.tree.summaries import PROMPTS, summary_calls, tree_size
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.registry import register


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return ⌈n / cluster_size⌉ summaries a layer of n nodes at most: a cluster of one node has none."""
    return summary_calls(settings, scale, settings["cluster_size"], "at most")


@register(
    "builder",
    "tree_k",
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
    cluster_size: int = 10,
    max_layers: int = 5,
    stop_size: int = 1,
    max_cluster_tokens: int | None = None,
    max_depth: int = 5,
    summary: Literal["model", "extractive"] = "model",
    summary_tokens: int = 100,
    tokenizer: str = "regex",
    seed: int = 224,
) -> Built:
    """Build a tree as RAPTOR does, with k-means for its mixtures (the unified paper's RAPTOR-K, for large corpora).

    Each layer of n nodes is divided by seeded k-means++ into ⌈n / ``cluster_size``⌉ clusters of its vectors, without
    projection; a node has at most one parent. As k is chosen by the number of nodes alone, growing goes on to a single
    root where ``max_layers`` allows. Single-node clusters are passed up, as in `tree`.

    Args:
        chunks: the leaves.
        model: writes the summaries.
        embedder: embeds leaves and summaries.
        cluster_size: nodes a cluster has on average; the paper gives none, and 10 is its code's.
        max_layers: layers of summaries at most.
        stop_size: a layer of at most so many nodes is the top; 1 grows to a root.
        max_cluster_tokens: a cluster of longer texts is clustered again, and packed where that does not help; null, the
            default, bounds nothing, as in the paper's code.
        max_depth: how often a cluster is clustered again.
        summary: written by the model, or extracted (the sentences nearest to the cluster's centroid), without a token.
        summary_tokens: tokens of a summary at most.
        tokenizer: counts the tokens of clusters and extracts; see ``load_tokenizer``.
        seed: seeds k-means.
    """
    check(max_layers=max_layers, stop_size=stop_size, cluster_size=cluster_size, max_cluster_tokens=max_cluster_tokens,
          summary_tokens=summary_tokens, max_depth=max_depth, least={"cluster_size": 2, "max_depth": 0})  # fmt: skip
    counter = load_tokenizer(tokenizer)
    shape = Shape(max_layers, stop_size, max_cluster_tokens, max_depth)
    step = KMeansOf(cluster_size, seed)
    return await grow(chunks, embedder, counter, step, writer(summary, chunks, counter, model, summary_tokens), shape)
