"""Export as CSV files with typed headers, for ``neo4j-admin database import full --multiline-fields=true``."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.exporters.rows import rows
from graphrag_bench.graph.graph import Graph, Incidence

Column = tuple[str, Iterable[Any]]  # a header, and the values under it


def write(graph: Graph, chunks: ChunkTable, folder: Path) -> list[Path]:
    """Write nodes, chunks and communities, and what joins them.

    Files of nodes: ``nodes`` (label Node), ``chunks`` (Chunk), ``communities`` (Community, with the report). Files of
    relationships: ``relationships`` (type: the kind, as FACT), ``mentions`` (MENTIONED_IN), ``members`` (IN_COMMUNITY),
    ``parents`` (CHILD_OF). Texts are quoted, quotation marks doubled, line breaks kept; null is the empty field, and a
    chunk's document ids are one text, a JSON list.
    """
    n = range(graph.n_nodes)
    relationships = graph.relationships
    given = [name for name in relationships.column_names if name not in ("source", "target", "kind")]
    found_in = (";".join(map(str, row)) for row in rows(graph.relationship_chunk))
    nodes, within = _pairs(graph.node_chunk)
    tables: dict[str, list[Column]] = {
        "nodes": [
            (":ID(Node)", n),
            *(_property(graph.nodes, name) for name in graph.nodes.column_names),
            (":LABEL", ["Node"] * len(n)),
        ],
        "chunks": [
            (":ID(Chunk)", range(len(chunks))),
            ("title", [chunk.title for chunk in chunks]),
            ("text", [chunk.text for chunk in chunks]),
            ("documents", [json.dumps(list(chunk.documents), ensure_ascii=False) for chunk in chunks]),
            (":LABEL", ["Chunk"] * len(chunks)),
        ],
        "relationships": [
            (":START_ID(Node)", graph.sources.tolist()),
            (":END_ID(Node)", graph.targets.tolist()),
            (":TYPE", [kind.upper() for kind in graph.column("relationships", "kind")]),
            *(_property(relationships, name) for name in given),
            ("chunks:long[]", found_in),
        ],
        "mentions": [
            (":START_ID(Node)", nodes),
            (":END_ID(Chunk)", within),
            (":TYPE", ["MENTIONED_IN"] * len(nodes)),
        ],
    }
    if graph.hierarchy is not None:
        count = len(graph.hierarchy)
        communities, members = _pairs(graph.hierarchy.members)
        children = [c for c, parent in enumerate(graph.hierarchy.parent.tolist()) if parent >= 0]
        report = graph.reports.table if graph.reports is not None else None
        tables["communities"] = [
            (":ID(Community)", range(count)),
            ("level:int", graph.hierarchy.level.tolist()),
            *(_property(report, name) for name in (report.column_names if report is not None else [])),
            (":LABEL", ["Community"] * count),
        ]
        tables["members"] = [
            (":START_ID(Node)", members),
            (":END_ID(Community)", communities),
            (":TYPE", ["IN_COMMUNITY"] * len(members)),
        ]
        tables["parents"] = [
            (":START_ID(Community)", children),
            (":END_ID(Community)", graph.hierarchy.parent[children].tolist()),
            (":TYPE", ["CHILD_OF"] * len(children)),
        ]
    return [_write(folder / f"{name}.csv", columns) for name, columns in tables.items()]


def _write(path: Path, columns: Sequence[Column]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(header for header, _ in columns) + "\n")
        for row in zip(*(values for _, values in columns), strict=True):
            file.write(",".join(map(_field, row)) + "\n")
    return path


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace('"', '""') + '"'


def _property(table: pa.Table, name: str) -> Column:
    kind = table[name].type
    type_ = ""
    if pa.types.is_boolean(kind):
        type_ = ":boolean"
    elif pa.types.is_integer(kind):
        type_ = ":long"
    elif pa.types.is_floating(kind):
        type_ = ":double"
    return f"{name}{type_}", table[name].to_pylist()


def _pairs(matrix: Incidence) -> tuple[list[int], list[int]]:
    pairs = matrix.tocoo()
    return pairs.row.tolist(), pairs.col.tolist()
