"""Steiner: one connected subgraph that is worth most, a prize-collecting Steiner tree."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds, marked
from graphrag_bench.graph.paths import Walker
from graphrag_bench.graph.steiner import (
    Field,
    Prizes,
    by_pcst_fast,
    by_rustworkx,
    similarity_prizes,
    solver_name,
    visited,
)
from graphrag_bench.pipeline.values import Nodes, Relationships, Row
from graphrag_bench.pipeline.walks import Path, Subgraphs
from graphrag_bench.registry import operator


@operator("subgraph.steiner", needs=("relationship.name|relationship.description",), engine=solver_name)
def steiner(
    graph: Graph,
    nodes: Nodes,
    relationships: Relationships,
    *,
    top_nodes: int = 3,
    top_relationships: int = 5,
    edge_cost: float = 0.5,
    kinds: Kinds = FACTS,
    solver: Literal["auto", "pcst_fast", "rustworkx"] = "auto",
) -> Subgraphs:
    """Take one connected subgraph that holds much of what is given at little cost, as G-Retriever does.

    Its nodes stand in the order of a breadth-first visit from the node with the highest prize, its relationships as
    visited; its score is 1. A relationship whose prize is above the cost may close a circle.

    Args:
        graph: walked in both directions.
        nodes: the first ``top_nodes`` have the prizes top_nodes, …, 2, 1.
        relationships: those of the ``top_relationships`` highest distinct scores have prizes; see `similarity_prizes`.
        top_nodes: nodes with a prize.
        top_relationships: distinct scores of relationships with a prize.
        edge_cost: what a relationship without a prize costs.
        kinds: the kinds of relationship that may be taken.
        solver: pcst_fast, or rustworkx, which approximates the same (see `by_rustworkx`); ``auto`` takes pcst_fast where it
            is installed.
    """
    solve = by_pcst_fast if (solver_name() if solver == "auto" else solver) == "pcst_fast" else by_rustworkx
    walker = Walker(graph, kinds)
    allowed = marked(graph, kinds) & (graph.sources != graph.targets)
    rows: list[list[Path]] = []
    for found, related in zip(nodes, relationships, strict=True):
        prizes = _prizes(found, related, allowed, top_nodes, top_relationships)
        if not len(prizes.nodes) and not (prizes.relationship_prizes > edge_cost).any():  # nothing is worth its cost
            rows.append([])
            continue
        chosen, taken = solve(Field(graph, walker, prizes, edge_cost, kinds))
        first = [int(node) for node in prizes.nodes if node in chosen]
        walk, steps = visited(graph, first[0] if first else int(chosen[0]), taken)
        rows.append([Path(walk, steps, (1,) * len(steps), 1.0)])
    return Subgraphs(rows)


def _prizes(
    nodes: Row, relationships: Row, allowed: NDArray[np.bool_], top_nodes: int, top_relationships: int
) -> Prizes:
    ids = nodes.ids[:top_nodes]
    kept = allowed[relationships.ids]
    related, scores = relationships.ids[kept], relationships.scores[kept]
    prizes = similarity_prizes(scores, top_relationships)
    by_id = np.argsort(related)
    by_id = by_id[prizes[by_id] > 0]
    return Prizes(ids, np.arange(len(ids), 0, -1.0), related[by_id], prizes[by_id])
