"""From cells to the rows of a table: one cell a row, or the runs that differ only in one axis averaged into one."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import Column, Value


@dataclass(frozen=True)
class Row:
    """One row: what sets it apart, the cells behind it, and a value (or None) a column."""

    method: str
    dataset: str
    axes: Mapping[str, Any]
    cells: tuple[CellResult, ...]
    values: tuple[Value | None, ...]

    @property
    def asked(self) -> int:
        """Questions asked, over all cells."""
        return sum(cell.asked for cell in self.cells)

    @property
    def answered(self) -> int:
        """Questions that did not fail, over all cells."""
        return sum(cell.answered for cell in self.cells)

    @property
    def failed(self) -> dict[str, int]:
        """Kind of failure → how many, over all cells."""
        total: Counter[str] = Counter()
        for cell in self.cells:
            total.update(cell.failed)
        return dict(sorted(total.items()))

    @property
    def statuses(self) -> tuple[str, ...]:
        """What became of the cells that are not done."""
        return tuple(dict.fromkeys(cell.status for cell in self.cells if cell.status != "done"))


def make_rows(cells: Sequence[CellResult], columns: Sequence[Column], over: str | None) -> tuple[Row, ...]:
    """Group cells that differ only in the axis ``over``; rows come by dataset, each in the order given."""
    groups: dict[tuple[Any, ...], list[CellResult]] = {}
    for cell in cells:
        axes = sorted((name, repr(value)) for name, value in cell.axes.items() if name != over)
        groups.setdefault((cell.dataset, cell.method, *axes), []).append(cell)
    averaged = any(len(group) > 1 for group in groups.values())
    rows = [
        Row(
            method=group[0].method,
            dataset=group[0].dataset,
            axes={name: value for name, value in group[0].axes.items() if not (averaged and name == over)},
            cells=tuple(group),
            values=tuple(_combine(column, group) for column in columns),
        )
        for group in groups.values()
    ]
    order = list(dict.fromkeys(row.dataset for row in rows))
    return tuple(sorted(rows, key=lambda row: order.index(row.dataset)))


def best_rows(rows: Sequence[Row], columns: Sequence[Column], decimals: int) -> set[tuple[int, int]]:
    """Return (row, column) of the best values of each dataset, by the column's direction.

    Two values that print alike are a tie, and all of a tie are best. A cell that is not done cannot be best, and where
    only one row has a value nothing is.
    """
    best: set[tuple[int, int]] = set()
    for j, column in enumerate(columns):
        if not column.direction:
            continue
        for dataset in {row.dataset for row in rows}:
            rivals = {
                i: value.value
                for i, row in enumerate(rows)
                if row.dataset == dataset and not row.statuses and (value := row.values[j]) is not None
            }
            if len(rivals) > 1:
                top = (min if column.direction == "lower" else max)(rivals.values())
                shown = column.text(top, decimals)
                best |= {(i, j) for i, value in rivals.items() if column.text(value, decimals) == shown}
    return best


def _combine(column: Column, cells: Sequence[CellResult]) -> Value | None:
    values = [value for cell in cells if (value := column.read(cell)) is not None]
    if len(cells) == 1 or not values:
        return values[0] if values else None
    numbers = [value.value for value in values]
    if column.format == "answered":
        return Value(sum(numbers))
    return Value(statistics.fmean(numbers), sd=statistics.stdev(numbers) if len(numbers) > 1 else None)
