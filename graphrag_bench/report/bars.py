"""A column of a table as a picture: a bar a row, dataset by dataset. One SVG, made by hand, the same bytes for the same rows."""

import math
from collections.abc import Sequence
from html import escape

from graphrag_bench.report.columns import Column, Value
from graphrag_bench.report.rows import Row

_WIDTH, _RIGHT, _TOP, _ROW, _HEAD = 960, 96, 48, 24, 30  # pixels
_LETTER, _LONGEST = 7.2, 64  # pixels a letter of a row's name takes, and letters that are shown of it
_WIDE = 50  # a greatest value of so many times the least is shown on a logarithmic axis
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.name,.value{font-size:12px}.dataset{font-weight:bold}.axis{stroke:#9aa5b1}"
    ".bar{fill:#3b6ea5}.spread{stroke:#222;stroke-width:1.2}"
)


def bars(rows: Sequence[Row], column: Column, number: int) -> str | None:
    """Return the picture of one column, or None where no row has a value.

    Bars begin at 0; where the greatest value is over fifty times the least, at the power of ten below the least, and the
    title says so. A thin line is the interval, or the standard deviation over runs.

    Args:
        rows: of the table.
        column: the column.
        number: its place among the rows' values.
    """
    values = {at: value for at, row in enumerate(rows) if (value := row.values[number]) is not None}
    if not values:
        return None
    names = _names(rows)
    left = 16 + round(_LETTER * min(_LONGEST, max(map(len, names))))
    scale = _Scale([value.value for value in values.values()], left)
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    percent = " (%)" if column.format == "percent" else ""
    parts = [
        f'<text x="{_WIDTH / 2:.0f}" y="28" text-anchor="middle">{escape(column.label)}{percent}{scale.said}</text>'
    ]
    y = _TOP
    for dataset in datasets:
        parts.append(f'<text class="dataset" x="{left}" y="{y + 18}">{escape(dataset)}</text>')
        top = y = y + _HEAD
        for at, row in enumerate(rows):
            if row.dataset != dataset:
                continue
            name = names[at]
            short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
            parts.append(
                f'<text class="name" x="{left - 8}" y="{y + 16}" text-anchor="end">{escape(short)}'
                f"<title>{escape(name)}</title></text>"
            )
            parts += _bar(values.get(at), column, scale, y)
            y += _ROW
        parts.append(f'<path class="axis" d="M{scale.zero:.1f} {top}V{y}"/>')
    height = y + 16
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">'
    )
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([frame, f"<style>{_STYLE}</style>", ground, *parts, "</svg>", ""])


def _names(rows: Sequence[Row]) -> list[str]:
    """Return what tells a row from the others: its method, where there are several, and the axes that differ."""
    axes = dict.fromkeys(name for row in rows for name in row.axes)
    varying = [name for name in axes if len({str(row.axes.get(name)) for row in rows}) > 1]
    alone = len({row.method for row in rows}) == 1 and bool(varying)
    return [
        " ".join(
            [
                *([] if alone else [row.method]),
                *(f"{name.rpartition('.')[2]}={row.axes[name]}" for name in varying if name in row.axes),
            ]
        )
        for row in rows
    ]


class _Scale:
    """Where a value stands, in pixels from the left; the bars begin at ``left``."""

    def __init__(self, values: Sequence[float], left: int) -> None:
        self.left = left
        low, high = min(values), max(values)
        self.logarithmic = low > 0 and high > _WIDE * low
        self.said = " (logarithmic)" if self.logarithmic else ""
        if self.logarithmic:
            self.low, self.high = float(math.floor(math.log10(low) - 1e-9)), math.log10(high)
        else:
            self.low, self.high = min(low, 0.0), max(high, 0.0)
        self.zero = self.at(10**self.low if self.logarithmic else 0.0)

    def at(self, value: float) -> float:
        """Return the place of a value, kept within the picture."""
        if self.logarithmic:
            value = math.log10(value) if value > 0 else self.low
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return self.left + (_WIDTH - self.left - _RIGHT) * min(max(share, 0.0), 1.0)


def _bar(value: Value | None, column: Column, scale: _Scale, y: int) -> list[str]:
    if value is None:
        return [f'<text class="value" x="{scale.zero + 6:.1f}" y="{y + 16}">–</text>']
    end = scale.at(value.value)
    left, right = sorted((scale.zero, end))
    parts = [f'<rect class="bar" x="{left:.1f}" y="{y + 4}" width="{right - left:.1f}" height="{_ROW - 8}"/>']
    around = value.ci or ((value.value - value.sd, value.value + value.sd) if value.sd is not None else None)
    if around is not None:
        parts.append(f'<path class="spread" d="M{scale.at(around[0]):.1f} {y + 12}H{scale.at(around[1]):.1f}"/>')
        right = max(right, scale.at(around[1]))
    parts.append(f'<text class="value" x="{right + 6:.1f}" y="{y + 16}">{escape(column.text(value.value))}</text>')
    return parts
