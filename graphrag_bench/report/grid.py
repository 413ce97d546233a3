"""A table as strings, before any format: what every renderer prints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_bench.report.columns import Column, Value
from graphrag_bench.report.rows import Row, best_rows

NONE = "–"
_NAMED = 8  # rows named before one note
PARTIAL, UNFINISHED = "†", "‡"


@dataclass(frozen=True)
class Shown:
    """One printed value: the number, what stands after it (an interval, ± sd), a flag, and whether it is the best."""

    number: str
    spread: str = ""
    flag: str = ""
    best: bool = False


@dataclass(frozen=True)
class Line:
    """One printed row; ``opens`` says that a new dataset begins here."""

    keys: tuple[str, ...]
    values: tuple[Shown, ...]
    opens: bool = False


@dataclass(frozen=True)
class Grid:
    """Headers, rows and the notes below them."""

    keys: tuple[str, ...]
    labels: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def make_grid(
    rows: Sequence[Row], columns: Sequence[Column], *, over: str | None, intervals: bool, level: float, decimals: int
) -> Grid:
    """Print every value, mark the best, flag what is incomplete and say in the notes what the marks mean."""
    best = best_rows(rows, columns, decimals)
    axes = list(dict.fromkeys(name for row in rows for name in row.axes))
    varying = [name for name in axes if len({str(row.axes.get(name, NONE)) for row in rows}) > 1]
    marks_answered = any(column.format == "answered" for column in columns)
    lines = []
    for i, row in enumerate(rows):
        partial = row.answered < row.asked
        flags = (PARTIAL if partial and not marks_answered else "") + (UNFINISHED if row.statuses else "")
        values = tuple(
            _shown(column, value, row, intervals=intervals, decimals=decimals, best=(i, j) in best)
            for j, (column, value) in enumerate(zip(columns, row.values, strict=True))
        )
        keys = (f"{row.method} {flags}".strip(), row.dataset, *(str(row.axes.get(name, NONE)) for name in varying))
        lines.append(Line(keys, values, opens=i > 0 and row.dataset != rows[i - 1].dataset))
    fixed = [f"{name} = {rows[0].axes[name]}" for name in axes if name not in varying]
    labels = tuple(f"{column.label} (%)" if column.format == "percent" else column.label for column in columns)
    return Grid(
        keys=("Method", "Dataset", *varying),
        labels=labels,
        lines=tuple(lines),
        notes=tuple(_notes(rows, lines, fixed, varying, over, level)),
    )


def _shown(
    column: Column, value: Value | None, row: Row, *, intervals: bool, decimals: int, best: bool
) -> Shown:
    if value is None:
        return Shown(NONE)
    if column.format == "answered":
        return Shown(f"{row.answered}/{row.asked}", flag=PARTIAL if row.answered < row.asked else "")
    number = column.text(value.value, decimals)
    if value.sd is not None:
        return Shown(number, f"± {column.text(value.sd, decimals)}", best=best)
    if value.ci is not None and intervals:
        low, high = (column.text(bound, decimals) for bound in value.ci)
        return Shown(number, f"[{low}, {high}]", best=best)
    return Shown(number, best=best)


def _notes(
    rows: Sequence[Row], lines: Sequence[Line], fixed: list[str], varying: list[str], over: str | None, level: float
) -> Iterator[str]:
    if fixed:
        yield ", ".join(fixed) + "."
    spreads = [shown.spread for line in lines for shown in line.values]
    if any(spread.startswith("[") for spread in spreads):
        yield f"[low, high]: {100 * level:g} % bootstrap interval over the questions."
    if any(spread.startswith("±") for spread in spreads):
        runs = sorted({len(row.cells) for row in rows if len(row.cells) > 1})
        yield f"±: standard deviation over {' or '.join(map(str, runs))} runs that differ in {over}."
    for row in rows:
        if row.answered < row.asked:
            kinds = "; ".join(f"{count} {kind}" for kind, count in row.failed.items())
            answered = f"{row.answered} of {row.asked} answered{f' ({kinds})' if kinds else ''}."
            yield f"{PARTIAL} {_name(row, varying)}: {answered}"
    for row in rows:
        if row.statuses:
            yield f"{UNFINISHED} {_name(row, varying)}: {'; '.join(row.statuses)}."
    said: dict[str, list[Row]] = {}
    for row in rows:
        for note in dict.fromkeys(note for cell in row.cells for note in cell.notes):
            said.setdefault(note, []).append(row)
    for note, about in said.items():
        names = [_name(row, varying) for row in about[:_NAMED]]
        names += [f"{len(about) - _NAMED} others"] if len(about) > _NAMED else []
        yield note if len(about) == len(rows) else f"{', '.join(names)}: {note}"


def _name(row: Row, varying: list[str]) -> str:
    axes = ", ".join(f"{name} = {row.axes[name]}" for name in varying if name in row.axes)
    return f"{row.method} on {row.dataset}{f' ({axes})' if axes else ''}"
