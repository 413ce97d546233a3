"""What an experiment's page may want reported beside its table: ``report: {leaderboard: recall@5, pareto: recall@5}``."""

from collections.abc import Callable, Sequence
from pathlib import Path

from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import make_columns
from graphrag_bench.report.pareto import pareto, retrieval_seconds
from graphrag_bench.report.scatter import scatter
from graphrag_bench.report.table import Table
from graphrag_bench.store.files import write_json, write_text

Report = Callable[[Sequence[CellResult], str, Path, float], str]
_BESIDE = ("recall@2", "recall@5", "all_gold@5", "mrr", "query_seconds", "answered")


def leaderboard(cells: Sequence[CellResult], metric: str, folder: Path, level: float) -> str:
    """Write leaderboard.md and .json: the cells by the metric, best first, the faster first among equals. Return it as text."""
    (column,) = make_columns([metric], cells)
    sign = 1.0 if column.direction == "lower" else -1.0

    def place(cell: CellResult) -> tuple[bool, float, float, str]:
        value = column.read(cell)
        worth = 0.0 if value is None else sign * value.value
        return value is None, worth, retrieval_seconds(cell) or 0.0, cell.method

    held = {name for cell in cells for name in cell.metrics}
    beside = [name for name in _BESIDE if name != metric and ("@" not in name or name in held)]
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
        safe = "".join(char if char.isalnum() or char in "-_." else "_" for char in one.dataset)
        write_text(folder / ("pareto.svg" if len(found) == 1 else f"pareto.{safe}.svg"), scatter(one))
    return "\n\n".join(one.to_text(level) for one in found)


REPORTS: dict[str, Report] = {"leaderboard": leaderboard, "pareto": pareto_front}
