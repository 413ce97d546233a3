"""KhopPath: shortest paths between the given nodes."""

from itertools import islice, pairwise

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds
from graphrag_bench.graph.paths import Walker
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Path, Subgraphs
from graphrag_bench.registry import operator


@operator("subgraph.khop_path", needs=("relationship.name|relationship.description",))
def khop_path(
    graph: Graph,
    nodes: Nodes,
    *,
    hops: int = 5,
    max_paths: int | None = 5,
    per_pair: int = 1,
    kinds: Kinds = FACTS,
) -> Subgraphs:
    """Join the given nodes by short paths: DALK's path exploration, by the unified paper's rule.

    Again and again the two nearest of the given nodes are joined by a shortest path, and every given node on it is done
    with; until no two are left within ``hops``. Of pairs as near, that with the smaller ids is first; a path runs from the
    smaller id, and of shortest paths that with the smaller node ids is first; of parallel relationships the heaviest stands
    on it, then that with the smaller id. A path that is part of another is merged into it, at the better of the two places.
    A path's score is one over its place.

    Args:
        graph: walked in both directions.
        nodes: the nodes to join; their scores do not count.
        hops: relationships on a path at most.
        max_paths: paths to keep.
        per_pair: how many of a pair's shortest paths are kept (5 in DALK's code).
        kinds: the kinds of relationship that are walked.
    """
    walker = Walker(graph, kinds)
    return Subgraphs([_joined(walker, set(row.ids.tolist()), hops, max_paths, per_pair) for row in nodes])


def _joined(walker: Walker, left: set[int], hops: int, max_paths: int | None, per_pair: int) -> list[Path]:
    found: list[tuple[int, ...]] = []
    for pair in walker.pairs(left, hops):
        walks = list(islice(walker.walks(pair), per_pair))
        left.difference_update((pair.one, pair.two), *walks)
        for walk in walks:
            _merge(found, walk)
    return [_path(walker, walk, 1.0 / place) for place, walk in enumerate(found[:max_paths], 1)]


def _merge(found: list[tuple[int, ...]], walk: tuple[int, ...]) -> None:
    """Put a path with the others: in the place of those that are part of it, or nowhere if it is part of one."""
    parts = [at for at, known in enumerate(found) if _within(known, walk)]
    if parts:
        found[parts[0]] = walk
        for at in reversed(parts[1:]):
            del found[at]
    elif not any(_within(walk, known) for known in found):
        found.append(walk)


def _within(part: tuple[int, ...], walk: tuple[int, ...]) -> bool:
    """Say whether a path is a stretch of another, walked either way."""
    width = len(part)
    stretches = {walk[at : at + width] for at in range(len(walk) - width + 1)}
    return part in stretches or part[::-1] in stretches


def _path(walker: Walker, walk: tuple[int, ...], score: float) -> Path:
    steps = [walker.step(start, end) for start, end in pairwise(walk)]
    return Path(walk, tuple(step[0] for step in steps), tuple(step[1] for step in steps), score)
