"""A grid as plain text, for rich, in Markdown, in LaTeX, in HTML."""

import re
from html import escape
from typing import TYPE_CHECKING

from graphrag_bench.report.grid import Grid, Shown
from graphrag_bench.report.layout import lay_out

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "†": r"$^\dagger$", "‡": r"$^\ddagger$", "±": r"$\pm$", "–": "--", "\n": " ",
}


def text(grid: Grid) -> str:
    """Return the table for a terminal or a log; ``*`` marks the best, numbers stand under each other."""
    rows = [list(line.keys) for line in grid.lines]
    right = set()
    for j in range(len(grid.labels)):
        shown = [line.values[j] for line in grid.lines]
        after = [" ".join(filter(None, (one.spread, one.flag))) for one in shown]
        number = [f"*{one.number}" if one.best else one.number for one in shown]
        wide, broad = max(map(len, number), default=0), max(map(len, after), default=0)
        if not broad:
            right.add(len(grid.keys) + j)
        for row, a, b in zip(rows, number, after, strict=True):
            row.append(f"{a:>{wide}} {b:<{broad}}".rstrip() if broad else a)
    notes = ["* best of its dataset."] if any(one.best for line in grid.lines for one in line.values) else []
    table = lay_out((*grid.keys, *grid.labels), rows, right)
    return "\n".join([table, *notes, *grid.notes])


def rich_table(grid: Grid) -> "RichTable":
    """Return the table for ``rich.print``; the best is bold, a line parts the datasets."""
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=Text("\n".join(grid.notes)) if grid.notes else None, caption_justify="left")
    for key in grid.keys:
        table.add_column(Text(key))
    for label in grid.labels:
        table.add_column(Text(label), justify="right")
    for line in grid.lines:
        if line.opens:
            table.add_section()
        values = [Text.assemble((one.number, "bold" if one.best else ""), _after(one)) for one in line.values]
        table.add_row(*map(Text, line.keys), *values)
    return table


def markdown(grid: Grid) -> str:
    """Return a GitHub table, the best in bold, the notes as a paragraph below."""

    def cell(one: Shown) -> str:
        return (f"**{one.number}**" if one.best else one.number) + _after(one)

    lines = [
        _markdown_line([markdown_text(label) for label in (*grid.keys, *grid.labels)]),
        _markdown_line(["---"] * len(grid.keys) + ["---:"] * len(grid.labels)),
        *(_markdown_line([*map(markdown_text, line.keys), *map(cell, line.values)]) for line in grid.lines),
    ]
    notes = "\\\n".join(map(markdown_text, grid.notes))
    return "\n".join(lines) + (f"\n\n{notes}" if notes else "")


def latex(grid: Grid) -> str:
    r"""Return a ``tabular`` with booktabs rules.

    A column whose values have an interval or deviation is two columns, numbers flush right and the rest flush left, so
    that the digits align by themselves; flags hang over (``\rlap``) for the same reason.
    """
    double = [any(line.values[j].spread for line in grid.lines) for j in range(len(grid.labels))]
    spec = "l" * len(grid.keys) + "".join(r"r@{\ }l" if two else "r" for two in double)
    header = [*map(_latex, grid.keys)] + [
        rf"\multicolumn{{2}}{{c}}{{{_latex(label)}}}" if two else _latex(label)
        for label, two in zip(grid.labels, double, strict=True)
    ]
    body = []
    for line in grid.lines:
        if line.opens:
            body.append(r"\addlinespace")
        cells = [*map(_latex, line.keys)]
        for one, two in zip(line.values, double, strict=True):
            number = rf"\textbf{{{_latex(one.number)}}}" if one.best else _latex(one.number)
            cells.append(number + (rf"\rlap{{{_latex(one.flag)}}}" if one.flag else ""))
            if two:
                cells.append(rf"{{\scriptsize {one.spread.replace('±', _LATEX['±'])}}}" if one.spread else "")
        body.append("  " + " & ".join(cells).rstrip() + r" \\")
    width = len(grid.keys) + len(grid.labels) + sum(double)
    notes = [rf"  \multicolumn{{{width}}}{{l}}{{\footnotesize {_latex(note)}}} \\" for note in grid.notes]
    return "\n".join([
        r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", "  " + " & ".join(header) + r" \\",
        r"\midrule", *body, r"\bottomrule", *notes, r"\end{tabular}",
    ])


def html(grid: Grid) -> str:
    """Return the table for a notebook."""

    def cell(one: Shown) -> str:
        number = f"<b>{escape(one.number)}</b>" if one.best else escape(one.number)
        return f'<td style="text-align:right">{number}<small>{escape(_after(one))}</small></td>'

    keys = "".join(f'<th style="text-align:left">{escape(key)}</th>' for key in grid.keys)
    labels = "".join(f'<th style="text-align:right">{escape(label)}</th>' for label in grid.labels)
    lines = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(key)}</td>' for key in line.keys)
        + "".join(map(cell, line.values)) + "</tr>\n"
        for line in grid.lines
    )
    notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in grid.notes)
    return f"<table>\n<thead><tr>{keys}{labels}</tr></thead>\n<tbody>\n{lines}</tbody>\n</table>\n{notes}"


def _after(one: Shown) -> str:
    return "".join(f" {part}" for part in (one.spread, one.flag) if part)


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(plain: str) -> str:
    """Return a text so that Markdown shows it as it is."""
    return re.sub(r"([\\|*`<\[\]])", r"\\\1", " ".join(plain.split()))


def _latex(plain: str) -> str:
    # A row that began with "[" would be read as the optional argument of the \\ before it.
    escaped = "".join(_LATEX.get(character, character) for character in plain)
    return f"{{[}}{escaped[1:]}" if escaped.startswith("[") else escaped
