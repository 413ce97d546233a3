"""The Pareto front: the cells that no other cell beats both in a metric and in the seconds that retrieval takes.

Dominance is between the point estimates. The intervals of the metric stand beside them, since two cells a question apart
are two points of this plane and no finding.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_bench.evaluation.catalogue import metric as known_metric
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import Value, make_columns
from graphrag_bench.report.layout import lay_out
from graphrag_bench.report.render import markdown_text


@dataclass(frozen=True)
class Point:
    """One cell in the plane: its value of the metric, and the seconds a question that its retrieval took."""

    method: str
    dataset: str
    axes: Mapping[str, Any]
    value: Value
    seconds: float

    @property
    def name(self) -> str:
        """The method, and the axes that set the cell apart."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.axes.items())])


@dataclass(frozen=True)
class Pareto:
    """The points of one dataset, and the front among them by rising seconds, ties by name."""

    dataset: str
    metric: str
    points: tuple[Point, ...]
    front: tuple[Point, ...]

    @property
    def label(self) -> str:
        """The metric's name in tables."""
        return known_metric(self.metric).label

    def _rows(self) -> list[list[str]]:
        (column,) = make_columns([self.metric], [])
        rows = []
        for number, point in enumerate(self.front, start=1):
            low, high = (column.text(bound) for bound in point.value.ci or (point.value.value, point.value.value))
            value = f"{column.text(point.value.value)} [{low}, {high}]"
            rows.append([str(number), point.name, value, str(point.value.n or ""), f"{1000 * point.seconds:.3f}"])
        return rows

    def _header(self) -> list[str]:
        return ["", "Method", f"{self.label} (%)", "n", "ms/question"]

    def _notes(self, level: float) -> list[str]:
        return [
            f"Pareto front on {self.dataset}: {len(self.front)} of {len(self.points)} cells, which no other cell beats in both "
            f"{self.label} and retrieval's milliseconds a question (wall time, amortised over a batch).",
            f"[low, high]: {100 * level:g} % bootstrap interval over n questions; the front is that of the point estimates.",
        ]

    def to_text(self, level: float = 0.95) -> str:
        """Return the front for a terminal; ``level`` is the coverage of the intervals."""
        said, explained = self._notes(level)
        return "\n".join([said, lay_out(self._header(), self._rows(), {0, 3, 4}), explained])

    def to_markdown(self, level: float = 0.95) -> str:
        """Return the front as a GitHub table."""
        said, explained = self._notes(level)
        head, *rows = ["| " + " | ".join(map(markdown_text, row)) + " |" for row in [self._header(), *self._rows()]]
        return "\n".join(
            [markdown_text(said), "", head, "| ---: | --- | ---: | ---: | ---: |", *rows, "", markdown_text(explained)]
        )

    def to_json(self) -> dict[str, Any]:
        """Return every point with raw values, those of the front marked."""
        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "seconds": "retrieval's wall seconds a question, amortised over a batch",
            "points": [
                {
                    "method": point.method,
                    "axes": dict(point.axes),
                    "value": point.value.value,
                    "n": point.value.n,
                    "ci": None if point.value.ci is None else list(point.value.ci),
                    "seconds": point.seconds,
                    "front": point in self.front,
                }
                for point in self.points
            ],
        }


def pareto(cells: Sequence[CellResult], metric: str) -> list[Pareto]:
    """Return the front of each dataset, in the order of the cells; cells without the metric or a retrieval take no part."""
    (column,) = make_columns([metric], cells)
    points: dict[str, list[Point]] = {}
    for cell in cells:
        value, seconds = column.read(cell), retrieval_seconds(cell)
        if cell.status == "done" and value is not None and seconds is not None:
            points.setdefault(cell.dataset, []).append(Point(cell.method, cell.dataset, cell.axes, value, seconds))
    higher = column.direction != "lower"
    return [Pareto(name, metric, tuple(found), front(found, higher=higher)) for name, found in points.items()]


def front(points: Iterable[Point], *, higher: bool = True) -> tuple[Point, ...]:
    """Return the points that no other is better than: as good in both, and better in one. Equals stand all on the front.

    Args:
        points: in any order.
        higher: whether more of the metric is better.
    """
    sign = -1.0 if higher else 1.0
    found: list[Point] = []
    best = float("inf")
    for point in sorted(points, key=lambda one: (one.seconds, sign * one.value.value, one.name)):
        worth = sign * point.value.value
        equal = bool(found) and worth == best and point.seconds == found[-1].seconds
        if worth < best or equal:
            found.append(point)
            best = worth
    return tuple(found)


def retrieval_seconds(cell: CellResult) -> float | None:
    """Return retrieval's seconds a question, None where none was measured."""
    return cell.seconds["retrieve"] / cell.asked if cell.asked and "retrieve" in cell.seconds else None
