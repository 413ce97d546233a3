"""Claims (GraphRAG calls them covariates): what a passage says of an entity that may be true, false or dated.

A claim is neither a node nor a relationship: it hangs on the node it is made about, may speak of another, and has a status and
dates. So it is a row of a table of its own beside the graph's two.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from graphrag_bench.graph.synonyms import phrase_key

STATUSES = ("true", "false", "suspected")
CLAIM_SCHEMA = pa.schema(
    [
        ("subject", pa.int32()),  # the node it is made about
        ("object", pa.int32()),  # the node it speaks of, -1 where it speaks of none
        ("chunk", pa.int32()),  # where it was found first, -1 where that is not known
        *((name, pa.string()) for name in ("type", "status", "start", "end", "description", "source")),
    ]
)
_NONE = ("", "none", "null")


class ClaimRecord(NamedTuple):
    """A claim as one chunk makes it. Dates are texts, empty where there are none; ``source`` is quoted from the chunk."""

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    start: str = ""
    end: str = ""
    description: str = ""
    source: str = ""


class Claims:
    """Collects claims about nodes, each once: the first of those with the same ends and the same words."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._said: set[tuple[Any, ...]] = set()
        self.homeless = 0
        """Claims left out since their subject is no node."""

    def add(self, record: ClaimRecord, subject: int | None, target: int | None, chunk: int = -1) -> None:
        """Take a claim, whose ends are nodes or nothing the graph knows."""
        if subject is None:
            self.homeless += 1
            return
        said = (subject, target, record.type.casefold(), phrase_key(record.description) or record.description)
        if said not in self._said:
            self._said.add(said)
            self._rows.append((subject, -1 if target is None else target, chunk, *record[2:]))

    def table(self) -> pa.Table:
        """Return what was collected, with CLAIM_SCHEMA."""
        columns: list[tuple[Any, ...]] = list(zip(*self._rows, strict=True)) or [()] * len(CLAIM_SCHEMA)
        names = CLAIM_SCHEMA.names
        return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)}, schema=CLAIM_SCHEMA)


def claim_of(data: Mapping[str, Any]) -> ClaimRecord:
    """Return a claim from its fields by name; what stands for nothing ("NONE") is empty, the status in small letters."""
    fields = {name: " ".join(str(data.get(name) or "").split()) for name in ClaimRecord._fields}
    fields |= {name: "" for name in ("object", "start", "end") if fields[name].casefold() in _NONE}
    return ClaimRecord(**{**fields, "status": fields["status"].casefold()})


def claim_lines(claims: pa.Table | None, names: list[str]) -> dict[int, list[str]]:
    """Return the lines of the claims about each node, in the table's order: what a report is told of them.

    Args:
        claims: with CLAIM_SCHEMA; None for none.
        names: of the nodes.
    """
    lines: dict[int, list[str]] = {}
    for row in claims.to_pylist() if claims is not None else ():
        lines.setdefault(row["subject"], []).append(_line(row, names))
    return lines


def _line(row: Mapping[str, Any], names: list[str]) -> str:
    ends = [names[row["subject"]], *([names[row["object"]]] if row["object"] >= 0 else [])]
    dated = [f"from {row['start']}" if row["start"] else "", f"to {row['end']}" if row["end"] else ""]
    if row["start"] and row["start"] == row["end"]:
        dated = [row["start"]]
    marks = ", ".join(_some([row["type"].lower(), row["status"], " ".join(_some(dated))]))
    return f"Claim on {' and '.join(ends)}{f' ({marks})' if marks else ''}: {row['description']}"


def _some(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part]
