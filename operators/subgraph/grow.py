"""Grow: paths made longer by the relationships a frontier has walked (ToG)."""

from collections import defaultdict

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.walks import FORWARD, Frontier, Path, Reach, Subgraphs
from graphrag_bench.registry import operator


@operator("subgraph.grow")
def grow(graph: Graph, frontier: Frontier, paths: Subgraphs | None = None) -> Subgraphs:
    """Lengthen every path that ends where a reached item came from; its score is then the item's.

    An item whose origin ends no path begins one of its own. Paths that no item lengthens stay, so that all facts found are
    kept, as in ToG's paper; but a node by itself stays only while its question has no path with a relationship. An item of
    a starting frontier is such a node.

    Args:
        graph: the ends of the relationships.
        frontier: what was reached, or where walks start.
        paths: the paths so far; none at the start.
    """
    rows = []
    for number, items in enumerate(frontier):
        ending: dict[int, list[Path]] = defaultdict(list)
        for path in () if paths is None else paths.row(number):
            ending[path.nodes[-1]].append(path)
        grown: list[Path] = []
        origins: set[int] = set()
        for item in items:
            if item.relationship < 0:
                grown.append(Path((item.node,), score=item.score))
                continue
            origin = _origin(graph, item)
            origins.add(origin)
            grown += [_longer(path, item) for path in ending[origin] or [Path((origin,))]]
        grown += [path for end, some in ending.items() if end not in origins for path in some]
        best: dict[tuple[object, ...], Path] = {}
        for path in sorted(grown, key=lambda path: -path.score):
            best.setdefault(path[:3], path)
        with_facts = [path for path in best.values() if path.relationships]
        rows.append(with_facts or list(best.values()))
    return Subgraphs(rows, {**({} if paths is None else paths.failed), **frontier.failed})


def _origin(graph: Graph, item: Reach) -> int:
    return int((graph.sources if item.direction == FORWARD else graph.targets)[item.relationship])


def _longer(path: Path, item: Reach) -> Path:
    return Path(
        (*path.nodes, item.node),
        (*path.relationships, item.relationship),
        (*path.directions, item.direction),
        item.score,
    )
