"""What global answers read in each condition of the GraphRAG paper: how many texts of how many tokens (its Table 2)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.reported import reported


class Condition(NamedTuple):
    """What one condition reads.

    Attributes:
        name: C0, C1, … for the community reports of a level, TS for the source texts.
        units: how many texts.
        tokens: of all of them together.
        share: of the tokens of the source texts.
        projected: how many of the units are leaves of a coarser level, which reaches no further down.
        missing: communities that cover the graph here and have no report.
    """

    name: str
    units: int
    tokens: int
    share: float
    projected: int = 0
    missing: int = 0


def conditions(graph: Graph, chunks: ChunkTable, count: Callable[[str], int]) -> list[Condition]:
    """Return the conditions C0 to the finest level, then TS.

    A level is covered by its own communities and by the leaves above it, as `Hierarchy.at` says; one without a report is
    left out, as ``community.layer`` leaves it out.

    Args:
        graph: with communities and reports.
        chunks: the source texts.
        count: counts the tokens of a text.
    """
    assert graph.reports is not None
    sizes = np.array([count(text) if text else 0 for text in graph.reports.table["text"].to_pylist()], np.int64)
    source = sum(count(chunk.text) for chunk in chunks)
    there, hierarchy = reported(graph), graph.communities
    found = []
    for level in range(int(hierarchy.level.max(initial=-1)) + 1):
        cover = hierarchy.at(level)
        read = cover[there[cover]]
        tokens = int(sizes[read].sum())
        projected, missing = int((hierarchy.level[read] < level).sum()), len(cover) - len(read)
        found.append(Condition(f"C{level}", len(read), tokens, tokens / max(source, 1), projected, missing))
    return [*found, Condition("TS", len(chunks), source, 1.0 if source else 0.0)]
