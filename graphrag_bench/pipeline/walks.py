"""What walks over the graph leave behind: paths and other small subgraphs, and frontiers."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from graphrag_bench.pipeline.texts import _all_failed, _Rows
from graphrag_bench.pipeline.values import NONE_FAILED, Nodes, Reasons, Relationships

FORWARD, BACKWARD = 1, -1


class Path(NamedTuple):
    """A small connected subgraph: a walk, or a tree.

    Attributes:
        nodes: its nodes, in the order of the walk (of a tree: as visited from its first node).
        relationships: the relationships between them; in a walk one fewer than nodes, and number i joins nodes i and i + 1.
        directions: 1 where a relationship is walked from its source to its target, -1 against it; 1 in a tree.
        score: higher is better.
    """

    nodes: tuple[int, ...]
    relationships: tuple[int, ...] = ()
    directions: tuple[int, ...] = ()
    score: float = 0.0


class Subgraphs(_Rows):
    """Paths of each question, best first (score descending, then by their nodes, relationships and directions)."""

    rows: tuple[tuple[Path, ...], ...]

    def __init__(self, rows: Sequence[Sequence[Path]], failed: Reasons = NONE_FAILED) -> None:
        ordered = [tuple(sorted(dict.fromkeys(row), key=lambda p: (-p.score, *p[:3]))) for row in rows]
        super().__init__(ordered, failed)

    def nodes(self) -> Nodes:
        """Return the nodes on the paths, each with the score of its best path."""
        return Nodes.of_rows(
            [([n for p in row for n in p.nodes], [p.score for p in row for _ in p.nodes]) for row in self.rows], self.failed
        )

    def relationships(self) -> Relationships:
        """Return the relationships on the paths, each with the score of its best path."""
        return Relationships.of_rows(
            [
                ([r for p in row for r in p.relationships], [p.score for p in row for _ in p.relationships])
                for row in self.rows
            ],
            self.failed,
        )

    parts: ClassVar[dict[str, tuple[type, Callable[[Any], Any]]]] = {
        "nodes": (Nodes, nodes),
        "relationships": (Relationships, relationships),
    }

    @classmethod
    def join(cls, values: Sequence["Subgraphs"], rule: str = "max") -> "Subgraphs":
        """Unite the paths of each question; a path given twice keeps its best score (or their sum)."""
        rows = []
        for number in range(values[0].size):
            best: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], float] = {}
            for path in (path for value in values for path in value.rows[number]):
                key = (path.nodes, path.relationships, path.directions)
                known = best.get(key)
                best[key] = path.score if known is None else known + path.score if rule == "sum" else max(known, path.score)
            rows.append([Path(*key, score) for key, score in best.items()])
        return cls(rows, _all_failed(values))


class Reach(NamedTuple):
    """One item of a frontier: a node, the relationship walked (-1 at the start), its direction (0 at the start), a score."""

    node: int
    relationship: int = -1
    direction: int = 0
    score: float = 1.0


class Frontier(_Rows):
    """Where the walks of each question stand, best first; a node may be there several times, by several relationships.

    Of items that are *reached*, ``node`` is where the walk stands and ``relationship`` how it came there; of items that
    are *chosen* but not yet walked, ``node`` is where the walk stands and ``relationship`` where it will go.
    """

    rows: tuple[tuple[Reach, ...], ...]

    def __init__(self, rows: Sequence[Sequence[Reach]], failed: Reasons = NONE_FAILED) -> None:
        by_rank = [tuple(sorted(row, key=lambda item: (-item.score, *item[:3]))) for row in rows]
        super().__init__(by_rank, failed)

    def nodes(self) -> Nodes:
        """Return the nodes of the items, each with its best score."""
        return Nodes.of_rows([([i.node for i in row], [i.score for i in row]) for row in self.rows], self.failed)

    def relationships(self) -> Relationships:
        """Return the relationships of the items, each with its best score."""
        walked = [[item for item in row if item.relationship >= 0] for row in self.rows]
        return Relationships.of_rows(
            [([i.relationship for i in row], np.array([i.score for i in row], float)) for row in walked], self.failed
        )

    parts: ClassVar[dict[str, tuple[type, Callable[[Any], Any]]]] = {
        "nodes": (Nodes, nodes),
        "relationships": (Relationships, relationships),
    }

    @classmethod
    def join(cls, values: Sequence["Frontier"], rule: str = "max") -> "Frontier":
        """Unite the items of each question; one given twice keeps its best score (or their sum)."""
        rows = []
        for number in range(values[0].size):
            best: dict[tuple[int, int, int], float] = {}
            for item in (item for value in values for item in value.rows[number]):
                known = best.get(item[:3])
                best[item[:3]] = item.score if known is None else known + item.score if rule == "sum" else max(known, item.score)
            rows.append([Reach(*key, score) for key, score in best.items()])
        return cls(rows, _all_failed(values))
