"""The columns of a result table: what each reads from a cell, how it is printed, and which way is better."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import PREFIX, community_metric, metric
from graphrag_bench.registry import REGISTRY, nearest
from graphrag_bench.report.cell import CellResult

Format = Literal["percent", "fraction", "number", "count", "seconds", "answered"]
DEFAULT_COLUMNS = ("accuracy", "recall@5", "index_tokens", "query_tokens", "query_seconds", "answered")


@dataclass(frozen=True)
class Value:
    """One number of a table: a metric of one run with its interval and n, or a mean over runs with its deviation."""

    value: float
    ci: tuple[float, float] | None = None
    sd: float | None = None
    n: int | None = None  # questions behind a metric of one run


@dataclass(frozen=True)
class Column:
    """A column; ``read`` returns None where a cell has nothing to show."""

    name: str
    label: str
    direction: Literal["higher", "lower", ""]  # which way is better; "" = nothing is best
    format: Format
    read: Callable[[CellResult], Value | None]

    def text(self, number: float, decimals: int = 1) -> str:
        """Print one number; percents and plain numbers take ``decimals``."""
        if self.format == "percent":
            return f"{100 * number:.{decimals}f}"
        if self.format == "count":
            return f"{number:,.0f}"
        if self.format == "fraction":
            return f"{number:.3f}"
        small = self.format == "seconds" and 0 < number < 0.1  # a retrieval takes milliseconds
        if not small:
            return f"{number:,.2f}"
        return f"{number:.4f}" if number >= 0.00005 else "<0.0001"


def make_columns(names: Iterable[str], cells: Iterable[CellResult]) -> tuple[Column, ...]:
    """Return the columns by name: a cost, ``answered``, any registered metric, or any metric the cells hold.

    A metric of community quality has ``community/`` in front of its name.

    Raises:
        UserError: A name is none of these.
    """
    held = {name for cell in cells for name in cell.metrics}
    return tuple(_column(name, held) for name in names)


def _column(name: str, held: set[str]) -> Column:
    if name in _COSTS:
        return _COSTS[name]
    if name.startswith(PREFIX) and name.removeprefix(PREFIX) in _of_communities():
        facts = community_metric(name).extra
        return Column(name, facts["label"], facts["direction"], facts["format"], _metric_reader(name))
    if name in held and name.partition("@")[0] not in _families():
        return Column(name, name, "", "number", _metric_reader(name))
    try:
        known = metric(name)
    except UserError:
        registered = {component.name for component in REGISTRY.all("metric")}
        near = nearest(name, held | set(_COSTS) | registered | {f"{PREFIX}{one}" for one in _of_communities()})
        raise UserError(f"There is no column {name!r}.", near) from None
    return Column(name, known.label, "lower" if known.direction == "lower" else "higher", "percent",
                  _metric_reader(name))


def _of_communities() -> set[str]:
    return {component.name for component in REGISTRY.all("community_metric")}


def _families() -> set[str]:
    return {component.name.partition("@")[0] for component in REGISTRY.all("metric")}


def _metric_reader(name: str) -> Callable[[CellResult], Value | None]:
    def read(cell: CellResult) -> Value | None:
        found: Any = cell.metrics.get(name)
        if found is None or found["value"] is None:
            return None
        ci = found.get("ci")
        return Value(found["value"], None if ci is None else (ci[0], ci[1]), n=found.get("n"))

    return read


def _index_tokens(cell: CellResult) -> Value | None:
    total = cell.total(cell.tokens, "index")
    return None if total is None else Value(total)


def _query_tokens(cell: CellResult) -> Value | None:
    total = cell.total(cell.tokens, "query")
    return None if total is None or cell.asked == 0 else Value(total / cell.asked)


def _index_seconds(cell: CellResult) -> Value | None:
    total = cell.total(cell.seconds, "index")
    return None if total is None else Value(total)


def _query_seconds(cell: CellResult) -> Value | None:
    total = cell.total(cell.seconds, "query")
    return None if total is None or cell.asked == 0 else Value(total / cell.asked)


def _answered(cell: CellResult) -> Value | None:
    return Value(cell.answered) if cell.asked else None


_COSTS = {
    column.name: column
    for column in (
        Column("index_tokens", "Index tokens", "lower", "count", _index_tokens),
        Column("query_tokens", "Tokens/question", "lower", "count", _query_tokens),
        Column("index_seconds", "Index seconds", "lower", "seconds", _index_seconds),
        Column("query_seconds", "Seconds/question", "lower", "seconds", _query_seconds),
        Column("answered", "Answered", "", "answered", _answered),
    )
}
