"""Hierarchical search (ArchRAG): the nearest entities, and the nearest communities of every layer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.hierarchy import HierarchyIndex
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.texts import By, Questions
from graphrag_bench.pipeline.united import Hit, unite
from graphrag_bench.pipeline.values import Communities, Nodes
from graphrag_bench.registry import operator

_LAYERS = 4  # of communities, while the hierarchy is not known


def found(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many entities or communities are taken at most: so many a layer."""
    layers = len(scale.up_to) or _LAYERS
    searched = layers if settings["max_layer"] is None else min(layers, int(settings["max_layer"]))
    return int(settings["top_k"]) * max(searched, 1)


class Hits(NamedTuple):
    """What hierarchical search finds: entities, and communities of all layers, each by its cosine."""

    nodes: Nodes
    communities: Communities


@operator("community.hierarchical", needs=("community", "community.report"), yields=found)
def hierarchical(
    graph: Graph,
    questions: Questions,
    index: HierarchyIndex,
    *,
    by: By = "question",
    top_k: int = 5,
    max_layer: int | None = None,
    pooled: bool = False,
    min_similarity: float = -1.0,
) -> Hits:
    """Search the entities and every layer of communities for what is nearest to the question (ArchRAG, Algorithm 2).

    Args:
        graph: with communities and reports; a community without a report is never taken.
        questions: the batch.
        index: over all layers, with C-HNSW or one search a layer.
        by: what of the question is looked up; of several texts the hits are united with their best score.
        top_k: hits a layer and text.
        max_layer: the highest layer that is searched, 1 being the finest communities and 0 the entities alone; null
            searches all, as the paper does (its code stops at 1).
        pooled: ``top_k`` counts what all layers give together, as one index without layers would.
        min_similarity: the least cosine that counts.
    """
    texts = questions.read(by)
    asked = [text for row in texts for text in row]
    nodes, *found = index.search(asked, top_k)
    finest = int(graph.communities.level.max(initial=-1))
    # a layer without any report is not in the index, and the ones above it keep their number
    numbers = [finest + 1 - int(graph.communities.level[layer[0]]) for layer in index.layers]
    layers = [hits for number, hits in zip(numbers, found, strict=True) if max_layer is None or number <= max_layer]
    above = [_joined([layer[at] for layer in layers]) for at in range(len(asked))]
    if pooled:
        cuts = [_cut(top_k, node[1], community[1]) for node, community in zip(nodes, above, strict=True)]
        nodes = [_from(cut, hit) for cut, hit in zip(cuts, nodes, strict=True)]
        above = [_from(cut, hit) for cut, hit in zip(cuts, above, strict=True)]
    return Hits(
        Nodes.of_rows(unite(texts, nodes, min_similarity)), Communities.of_rows(unite(texts, above, min_similarity))
    )


def _joined(hits: list[Hit]) -> Hit:
    """Put the hits of one text in several layers together."""
    ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in hits)])
    return ids, np.concatenate([np.empty(0), *(scores for _, scores in hits)])


def _cut(top_k: int, *scores: NDArray[np.float64]) -> float:
    """Return the score of the last of the best; equals of it all count."""
    ranked = np.sort(np.concatenate(scores))[::-1]
    return float(ranked[min(top_k, len(ranked)) - 1]) if len(ranked) else 0.0


def _from(cut: float, hit: Hit) -> Hit:
    return hit[0][hit[1] >= cut], hit[1][hit[1] >= cut]
