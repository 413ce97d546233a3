"""Bridge: shortest paths from each key node to the next (HiRAG)."""

from itertools import islice, pairwise

from graphrag_bench.graph.bridges import Bridges
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import Kinds
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Path, Subgraphs
from graphrag_bench.registry import operator


@operator("subgraph.bridge", needs=("relationship.name|relationship.description",))
def bridge(graph: Graph, nodes: Nodes, *, max_hops: int | None = None, kinds: Kinds = ("fact", "member")) -> Subgraphs:
    """Join the given nodes in their order, each to the next, by a shortest path (HiRAG's bridge level, section 4.2).

    Paths are unweighted and walked in both directions; of those as short, that with the smaller node ids is taken. Where no
    path leads on, the walk jumps: there is none for that pair. Of parallel relationships the heaviest stands on the path,
    then that with the smaller id. A path's score is one over its place.

    Args:
        graph: walked in both directions.
        nodes: in order.
        max_hops: a longer path is none; null for any length.
        kinds: the kinds of relationship that are walked.
    """
    bridges = Bridges(graph, kinds)
    pairs = [list(pairwise(row.ids.tolist())) for row in nodes]
    walks = bridges.between([pair for row in pairs for pair in row], max_hops)
    each = iter(zip(walks, bridges.steps(walks), strict=True))
    rows = []
    for row in pairs:
        found = [(walk, step) for walk, step in islice(each, len(row)) if walk]
        rows.append([Path(walk, *step, 1.0 / place) for place, (walk, step) in enumerate(found, 1)])
    return Subgraphs(rows)
