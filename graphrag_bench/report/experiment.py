"""What an experiment's page may want reported: ``report: {leaderboard: recall@5, bars: [query_tokens, query_seconds]}``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import PREFIX
from graphrag_bench.evaluation.catalogue import metric as known_metric
from graphrag_bench.report.bars import bars
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import make_columns
from graphrag_bench.report.pareto import pareto, retrieval_seconds
from graphrag_bench.report.scatter import scatter
from graphrag_bench.report.table import Table
from graphrag_bench.store.files import write_json, write_text


@dataclass(frozen=True)
class Report:
    """A kind of report.

    Attributes:
        about: reads what the page wrote (a metric, a list of columns); raises UserError where that is wrong.
        make: writes the report into the run's folder, from the cells, what ``about`` returned and the coverage of the
            intervals; returns what to print.
        is_table: whether it stands for the usual table on the screen.
    """

    about: Callable[[Any], Any]
    make: Callable[[Sequence[CellResult], Any, Path, float], str]
    is_table: bool = False


_BESIDE = ("recall@2", "recall@5", "all_gold@5", "mrr", "query_seconds", "answered")


def leaderboard(cells: Sequence[CellResult], metric: str, folder: Path, level: float) -> str:
    """Write leaderboard.md and .json: the cells by the metric, best first, the faster first among equals. Return it as text."""
    (column,) = make_columns([metric], cells)
    sign = 1.0 if column.direction == "lower" else -1.0

    def place(cell: CellResult) -> tuple[bool, float, float, str]:
        value = column.read(cell)
        worth = 0.0 if value is None else sign * value.value
        return value is None, worth, retrieval_seconds(cell) or 0.0, cell.method

    held = dict.fromkeys(name for cell in cells for name in cell.metrics)
    beside = [name for name in _BESIDE if name != metric and ("@" not in name or name in held)]
    if metric.startswith(PREFIX):
        beside = [*(name for name in held if name.startswith(PREFIX) and name != metric), "index_seconds"]
    table = Table(sorted(cells, key=place), [metric, *beside], level=level)
    write_text(folder / "leaderboard.md", table.to_markdown() + "\n")
    write_json(folder / "leaderboard.json", table.to_json())
    return str(table)


def pareto_front(cells: Sequence[CellResult], metric: str, folder: Path, level: float) -> str:
    """Write pareto.md and .json and a picture a dataset, pareto.svg or pareto.<dataset>.svg; return the fronts as text."""
    found = pareto(cells, metric)
    if not found:
        return f"No cell has both {metric} and a retrieval that was timed: there is no front."
    write_text(folder / "pareto.md", "\n\n".join(one.to_markdown(level) for one in found) + "\n")
    write_json(folder / "pareto.json", [one.to_json() for one in found])
    for one in found:
        write_text(folder / ("pareto.svg" if len(found) == 1 else f"pareto.{_safe(one.dataset)}.svg"), scatter(one))
    return "\n\n".join(one.to_text(level) for one in found)


def chosen_table(cells: Sequence[CellResult], columns: Sequence[str], folder: Path, level: float) -> str:
    """Write table.md and .json with the page's columns instead of the usual ones. Return the table as text."""
    table = Table(cells, columns, level=level)
    write_text(folder / "table.md", table.to_markdown() + "\n")
    write_json(folder / "table.json", table.to_json())
    return str(table)


def pictures(cells: Sequence[CellResult], columns: Sequence[str], folder: Path, level: float) -> str:
    """Write a picture a column, bars.<column>.svg: a bar a row of the table. Return their names."""
    table = Table(cells, columns, level=level)
    written = []
    for number, column in enumerate(table.columns):
        drawn = bars(table.rows, column, number)
        if drawn is not None:
            written.append(f"bars.{_safe(column.name)}.svg")
            write_text(folder / written[-1], drawn)
    return f"Bars: {', '.join(written)}" if written else f"No cell has any of {', '.join(columns)}: there are no bars."


def _safe(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in name)


def _one(about: Any) -> str:
    return make_columns([str(about)], [])[0].name


def _several(about: Any) -> list[str]:
    if not isinstance(about, list) or not about:
        raise UserError("This report wants a list of columns.", "Write [accuracy, query_tokens].")
    return [_one(name) for name in about]


def _metric(about: Any) -> str:
    return known_metric(str(about)).name


REPORTS: dict[str, Report] = {
    "table": Report(_several, chosen_table, is_table=True),
    "leaderboard": Report(_one, leaderboard, is_table=True),
    "pareto": Report(_metric, pareto_front),
    "bars": Report(_several, pictures),
}
