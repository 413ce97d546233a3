"""Export as GraphML: one file, a directed multigraph with every column, for networkx, igraph, Gephi and their like."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.exporters.rows import rows
from graphrag_bench.graph.graph import Graph, Incidence

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 cannot hold at all
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def write(graph: Graph, chunks: ChunkTable, folder: Path) -> list[Path]:
    """Write ``graph.graphml``.

    Nodes are ``n0``, ``n1``, … and edges ``r0``, …, numbered as in the graph. ``chunks`` holds the ids of an element's
    chunks and ``communities`` those of a node's communities, each apart by a space; null and empty texts are left out. A
    character that XML cannot hold becomes U+FFFD.
    """
    path = folder / "graph.graphml"
    nodes = {name: _column(graph.nodes, name) for name in graph.nodes.column_names}
    nodes["chunks"] = ("string", _lists(graph.node_chunk))
    if graph.hierarchy is not None:
        nodes["communities"] = ("string", _lists(graph.hierarchy.members.T.tocsr()))
    ends = ("source", "target")
    columns = [name for name in graph.relationships.column_names if name not in ends]
    edges = {name: _column(graph.relationships, name) for name in columns}
    edges["chunks"] = ("string", _lists(graph.relationship_chunk))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        for kind, table in (("node", nodes), ("edge", edges)):
            for name, (type_, _) in table.items():
                key = quoteattr(f"{kind}.{name}")
                file.write(f'  <key id={key} for="{kind}" attr.name={quoteattr(name)} attr.type="{type_}"/>\n')
        file.write('  <graph id="G" edgedefault="directed">\n')
        for number in range(graph.n_nodes):
            _element(file, f'<node id="n{number}">', "node", number, nodes)
        for number, (source, target) in enumerate(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)):
            tag = f'<edge id="r{number}" source="n{source}" target="n{target}">'
            _element(file, tag, "edge", number, edges)
        file.write("  </graph>\n</graphml>\n")
    return [path]


def _element(file: TextIO, tag: str, kind: str, number: int, table: dict[str, tuple[str, list[Any]]]) -> None:
    file.write(f"    {tag}\n")
    for name, text in _values(number, table):
        file.write(f"      <data key={quoteattr(f'{kind}.{name}')}>{text}</data>\n")
    file.write(f"    </{kind}>\n")


def _values(number: int, table: dict[str, tuple[str, list[Any]]]) -> Iterator[tuple[str, str]]:
    for name, (type_, column) in table.items():
        value = column[number]
        if value is None or value == "":
            continue
        if type_ == "boolean":
            yield name, str(bool(value)).lower()
        elif type_ == "string":
            # a carriage return as it is would be read as a line feed
            yield name, escape(_FORBIDDEN.sub("\ufffd", str(value)), {"\r": "&#13;"})
        else:
            yield name, repr(value)


def _column(table: pa.Table, name: str) -> tuple[str, list[Any]]:
    """Return a column's GraphML type and its values."""
    kind = table[name].type
    values = table[name].to_pylist()
    if pa.types.is_boolean(kind):
        return "boolean", values
    if pa.types.is_integer(kind):
        return "long", values
    if pa.types.is_floating(kind):
        return "double", values
    return "string", values


def _lists(matrix: Incidence) -> list[str]:
    """Return each row's columns, apart by a space."""
    return [" ".join(map(str, row)) for row in rows(matrix)]
