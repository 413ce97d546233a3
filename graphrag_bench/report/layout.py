"""Plain text in columns."""

from collections.abc import Collection, Sequence


def lay_out(header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> str:
    """Align cells under their header, two spaces apart; the columns named in ``right`` end flush.

    Widths are those of a terminal: a Chinese character takes two places, a combining accent none.
    """
    from rich.cells import cell_len

    widths = [max(cell_len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for i, cell in enumerate(cells):
            space = " " * (widths[i] - cell_len(cell))
            padded.append(space + cell if i in right else cell + space)
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), "  ".join("─" * width for width in widths), *map(line, rows)])
