"""Layer: the communities of a level of the hierarchy."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.reported import ratings, reported
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.rows import NOTHING, by_place, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Communities
from graphrag_bench.registry import operator


def communities(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many communities are taken."""
    there = scale.per_level(scale.at if settings["mode"] == "at" else scale.up_to, settings["level"])
    return there if settings["top_k"] is None else min(there, int(settings["top_k"]))


@operator("community.layer", needs=("community", "community.report"), yields=communities)
def layer(
    graph: Graph,
    questions: Questions,
    *,
    level: int = 1,
    mode: Literal["up_to", "at"] = "up_to",
    min_rating: float = 0.0,
    top_k: int | None = 512,
) -> Communities:
    """Take the communities of a level, the same for every question; one without a report is never taken.

    They stand by occurrence (the number of chunks in which any of their nodes occurs), then by the rating of their report,
    as in nano-graphrag's global search. The score is one over the place; equals share theirs and stand by id.

    Args:
        graph: with communities and reports.
        questions: the batch.
        level: counted down from the coarsest, which is 0.
        mode: ``up_to`` takes this level and all coarser ones (nano-graphrag, at 2); ``at`` takes this level and, where it
            does not reach, the coarser communities that were not divided (C0 to C3 of the GraphRAG paper).
        min_rating: communities rated lower are left out; a report without a rating counts as rated 0.
        top_k: communities to keep.
    """
    hierarchy, rating = graph.communities, ratings(graph)
    chosen = reported(graph, level) & (np.where(np.isinf(rating), 0.0, rating) >= min_rating)
    if mode == "at":
        chosen &= np.isin(np.arange(len(hierarchy)), hierarchy.at(level))
    ids = np.flatnonzero(chosen)
    occurrence = np.diff((hierarchy.members[ids] @ graph.node_chunk).indptr)
    row = by_place(ids, (-occurrence, -rating[ids]), top_k)
    return stack(Communities, [NOTHING if number in questions.failed else row for number in range(questions.size)])
