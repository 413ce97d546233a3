"""The table of results: an object that prints itself wherever it is looked at."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphrag_bench.errors import UserError
from graphrag_bench.report.cell import CellResult
from graphrag_bench.report.columns import DEFAULT_COLUMNS, Column, make_columns
from graphrag_bench.report.grid import Grid, make_grid
from graphrag_bench.report.render import html, latex, markdown, rich_table, text
from graphrag_bench.report.rows import Row, best_rows, make_rows

if TYPE_CHECKING:
    import pandas
    from rich.table import Table as RichTable


class Table:
    """Results of several cells, one row each.

    The best value of every column within a dataset is marked (bold; ``*`` in plain text), by the column's direction,
    ties included. What did not finish or was not answered in full is flagged and explained below the table.

    Args:
        cells: The results, in the order wanted.
        columns: Names: a metric, ``index_tokens``, ``query_tokens`` (a question), ``index_seconds``, ``query_seconds``
            (a question), ``answered``.
        over: Average the cells that differ only in this axis: mean ± standard deviation. None = a row each.
        intervals: Print the bootstrap interval behind a metric.
        level: The coverage of these intervals, for the line that explains them.

    Raises:
        UserError: A column is neither known nor among the cells' metrics.
    """

    def __init__(
        self,
        cells: Sequence[CellResult],
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        over: str | None = "seed",
        intervals: bool = True,
        level: float = 0.95,
    ) -> None:
        self.cells = tuple(cells)
        self.columns: tuple[Column, ...] = make_columns(columns, cells)
        self.over = over
        self.intervals = intervals
        self.level = level

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows with their raw values."""
        return make_rows(self.cells, self.columns, self.over)

    def __str__(self) -> str:
        return text(self._grid(1))

    def __rich__(self) -> "RichTable":
        return rich_table(self._grid(1))

    def _repr_html_(self) -> str:
        return html(self._grid(1))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def to_markdown(self) -> str:
        """Return a GitHub table with its notes below."""
        return markdown(self._grid(1))

    def to_latex(self) -> str:
        """Return a ``tabular`` for the package booktabs; percents and seconds with two decimals."""
        return latex(self._grid(2))

    def to_json(self) -> dict[str, Any]:
        """Return columns and rows with raw values (fractions, not percent), ready for ``json.dumps``."""
        best = best_rows(self.rows, self.columns, 1)
        return {
            "columns": [
                {"name": c.name, "label": c.label, "direction": c.direction or None, "format": c.format}
                for c in self.columns
            ],
            "rows": [
                {
                    "method": row.method,
                    "dataset": row.dataset,
                    "axes": dict(row.axes),
                    "runs": len(row.cells),
                    "asked": row.asked,
                    "answered": row.answered,
                    "failed": row.failed,
                    "status": "; ".join(row.statuses) or "done",
                    "values": {
                        column.name: None if value is None else {
                            "value": value.value,
                            "n": value.n,
                            "ci": None if value.ci is None else list(value.ci),
                            "sd": value.sd,
                            "best": (i, j) in best,
                        }
                        for j, (column, value) in enumerate(zip(self.columns, row.values, strict=True))
                    },
                }
                for i, row in enumerate(self.rows)
            ],
        }

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a data frame of raw values; intervals and deviations are columns ``X_low``, ``X_high``, ``X_sd``.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise UserError("pandas is not installed.", "pip install 'graphrag-bench[pandas]'") from None
        frame = []
        for row in self.rows:
            line: dict[str, Any] = {"method": row.method, "dataset": row.dataset} | dict(row.axes)
            line |= {"asked": row.asked, "answered": row.answered}
            for column, value in zip(self.columns, row.values, strict=True):
                line[column.name] = None if value is None else value.value
                if value is not None and value.ci is not None:
                    line[f"{column.name}_low"], line[f"{column.name}_high"] = value.ci
                if value is not None and value.sd is not None:
                    line[f"{column.name}_sd"] = value.sd
            frame.append(line)
        return pandas.DataFrame(frame)

    def _grid(self, decimals: int) -> Grid:
        return make_grid(
            self.rows, self.columns, over=self.over, intervals=self.intervals, level=self.level, decimals=decimals
        )
