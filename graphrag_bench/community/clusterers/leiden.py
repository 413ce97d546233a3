"""Hierarchical Leiden (Traag, Waltman and van Eck, 2019), as GraphRAG uses it: communities too large are divided again."""

from collections.abc import Sequence
from math import inf
from typing import Literal

import numpy as np

from graphrag_bench.community.division import Divide, divide_again
from graphrag_bench.community.engines import with_igraph, with_leidenalg
from graphrag_bench.community.simple import simple_edges
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import Graph
from graphrag_bench.registry import register

Kind = Literal["fact", "synonym", "is_a", "member", "passage"]
_ENGINES = {"igraph": with_igraph, "leidenalg": with_leidenalg}


@register("clusterer", "leiden", needs=("relationship.weight",))
def leiden(
    graph: Graph,
    *,
    max_size: int = 10,
    resolution: float = 1.0,
    max_levels: int | None = None,
    kinds: Sequence[Kind] = ("fact",),
    isolated: Literal["none", "own"] = "none",
    engine: Literal["igraph", "leidenalg"] = "igraph",
    iterations: int = 10,
    seed: int = 0,
) -> Hierarchy:
    """Find communities by Leiden on modularity, and divide those that are larger than ``max_size`` again.

    Works on the weighted undirected simple view of the relationships walked; those whose weight is not positive join
    nothing. Level 0 is the coarsest and covers every component (GraphRAG's code keeps the largest alone). A community is
    divided by Leiden on the relationships inside it, until its parts fit or modularity does not divide it: a star is one
    community however large. A division depends on nothing but the community, the settings and the seed.

    Args:
        graph: whose relationships are walked.
        max_size: nodes from which on a community is left whole (GraphRAG: 10).
        resolution: of modularity; higher gives more and smaller communities.
        max_levels: levels at most; null for as many as it takes.
        kinds: the kinds of relationship walked.
        isolated: what becomes of a node that nothing joins to another: in no community, as in GraphRAG (the hierarchy's
            statistics say how many there are), or in one of its own at level 0.
        engine: igraph, or leidenalg: the same objective, another implementation.
        iterations: passes of Leiden at most; -1 for as many as still improve.
        seed: of the random order in which Leiden visits nodes.

    Returns:
        Communities by level, within a level by their smallest node.

    Raises:
        UserError: A setting is out of its range.
    """
    for name, value, fits, wanted in (
        ("max_size", max_size, max_size >= 1, "1 or more"),
        ("resolution", resolution, 0 < resolution < inf, "a number above 0"),
        ("max_levels", max_levels, max_levels is None or max_levels >= 1, "1 or more, or null"),
        ("iterations", iterations, iterations == -1 or iterations >= 1, "1 or more, or -1"),
    ):
        if not fits:
            raise UserError(f"community.{name} is {value}.", f"Write {wanted}.")
    left, right, weight = simple_edges(graph, kinds)
    joined = np.zeros(graph.n_nodes, dtype=bool)
    joined[left] = joined[right] = True
    divide: Divide = _ENGINES[engine](resolution, iterations, seed)
    alone = np.flatnonzero(~joined) if isolated == "own" else np.empty(0, np.int64)
    return divide_again(
        graph.n_nodes, np.flatnonzero(joined), (left, right, weight), divide, max_size, max_levels, alone
    )
