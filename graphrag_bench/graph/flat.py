"""A graph as flat Parquet tables that any tool reads, and back.

``nodes``, ``relationships`` and ``chunks`` have an ``id``; ``mentions`` says which node or relationship stands in which
chunk, ``communities`` and ``memberships`` who belongs where, ``reports`` what is said of a community, and
``claims`` what passages claim of nodes, where they were asked.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.claims import CLAIM_SCHEMA
from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, Reports
from graphrag_bench.graph.graph import ATTRIBUTES, KINDS, Graph, Incidence, incidence
from graphrag_bench.graph.tables import read_parquet

MARK = "mentions.parquet"  # what tells these tables from a graph's own files
_ATTRIBUTES = b"attributes"


def write_tables(graph: Graph, chunks: ChunkTable, folder: Path) -> list[Path]:
    """Write the tables into an existing folder; return the files."""
    nodes, relationships = graph.node_chunk.tocoo(), graph.relationship_chunk.tocoo()
    kinds = ["node"] * nodes.nnz + ["relationship"] * relationships.nnz
    tables = {
        "nodes": _numbered(graph.nodes).replace_schema_metadata(
            {_ATTRIBUTES: ",".join(sorted(graph.attributes)).encode()}
        ),
        "relationships": _numbered(graph.relationships),
        "chunks": pa.table(
            {
                "id": pa.array([chunk.id for chunk in chunks], pa.int64()),
                "title": pa.array([chunk.title for chunk in chunks], pa.string()),
                "text": pa.array([chunk.text for chunk in chunks], pa.string()),
                "documents": pa.array([list(chunk.documents) for chunk in chunks], pa.list_(pa.string())),
                "tokens": pa.array([chunk.tokens for chunk in chunks], pa.int64()),
            }
        ),
        "mentions": pa.table(
            {
                "element": pa.array(kinds, pa.string()),
                "id": pa.array(np.concatenate([nodes.row, relationships.row]), pa.int64()),
                "chunk": pa.array(np.concatenate([nodes.col, relationships.col]), pa.int64()),
            }
        ),
    }
    if graph.hierarchy is not None:
        members = graph.hierarchy.members.tocoo()
        columns = {"level": graph.hierarchy.level, "parent": graph.hierarchy.parent}
        tables["communities"] = _numbered(
            pa.table({name: pa.array(value, pa.int32()) for name, value in columns.items()})
        )
        tables["memberships"] = pa.table(
            {"community": pa.array(members.row, pa.int64()), "node": pa.array(members.col, pa.int64())}
        )
    if graph.reports is not None:
        tables["reports"] = _numbered(graph.reports.table)
    if graph.claims is not None:
        tables["claims"] = graph.claims
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    return [folder / f"{name}.parquet" for name in tables]


def _numbered(table: pa.Table) -> pa.Table:
    return table.add_column(0, pa.field("id", pa.int64()), pa.array(np.arange(table.num_rows), pa.int64()))


def read_tables(folder: Path) -> tuple[Graph, ChunkTable]:
    """Return the graph and the chunks of a folder that `write_tables` wrote, or that was written like it.

    Raises:
        UserError: A table or a column is missing, or an id is none.
    """
    nodes = _table(folder, "nodes", ["id", "name"])
    relationships = _table(folder, "relationships", ["id", "source", "target", "kind", "name", "weight"])
    rows = _table(folder, "chunks", ["id", "title", "text", "documents", "tokens"])
    chunks = tuple(
        Chunk(row["id"], row["text"] or "", row["title"] or "", tuple(row["documents"] or ()), row["tokens"] or 0)
        for row in rows.to_pylist()
    )
    mentions = _table(folder, "mentions", ["element", "id", "chunk"])
    if unknown := sorted(set(map(str, mentions["element"].unique().to_pylist())) - {"node", "relationship"}):
        raise UserError(f"{folder / MARK}: {unknown[0]!r} is neither node nor relationship.", "Export the graph again.")
    of_node = np.array([element == "node" for element in mentions["element"].to_pylist()], dtype=bool)
    pairs = (mentions, folder / MARK)
    attributes = (nodes.schema.metadata or {}).get(_ATTRIBUTES, b"").decode()
    graph = Graph(
        nodes.drop_columns(["id"]),
        relationships.drop_columns(["id"]),
        _incidence(*pairs, ("id", "chunk"), (nodes.num_rows, len(chunks)), of_node),
        _incidence(*pairs, ("id", "chunk"), (relationships.num_rows, len(chunks)), ~of_node),
        frozenset(attributes.split(",")) & frozenset(ATTRIBUTES),
        claims=_claims(folder, nodes.num_rows, len(chunks)),
    )
    if not (folder / "communities.parquet").is_file():
        return graph, chunks
    communities = _table(folder, "communities", ["id", "level", "parent"])
    members = _table(folder, "memberships", ["community", "node"])
    shape = communities.num_rows, nodes.num_rows
    matrix = _incidence(members, folder / "memberships.parquet", ("community", "node"), shape, None)
    level, parent = (np.asarray(communities[name].to_numpy(), np.int32) for name in ("level", "parent"))
    reports = None
    if (folder / "reports.parquet").is_file():
        reports = Reports(
            _table(folder, "reports", REPORT_SCHEMA.names).select(REPORT_SCHEMA.names).cast(REPORT_SCHEMA)
        )
    return graph.with_communities(Hierarchy(level, parent, matrix), reports), chunks


def _claims(folder: Path, n_nodes: int, n_chunks: int) -> pa.Table | None:
    path = folder / "claims.parquet"
    if not path.is_file():
        return None
    claims = _table(folder, "claims", CLAIM_SCHEMA.names).select(CLAIM_SCHEMA.names).cast(CLAIM_SCHEMA)
    for name, least, size in (("subject", 0, n_nodes), ("object", -1, n_nodes), ("chunk", -1, n_chunks)):
        ids = claims[name].to_numpy()
        if claims[name].null_count or (len(ids) and not least <= ids.min() <= ids.max() < size):
            raise UserError(f"{path}: an id in the column {name} is not among the {size:,} there are.", "Export again.")
    return claims


def _table(folder: Path, name: str, columns: list[str]) -> pa.Table:
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise UserError(f"The folder {folder} has no {path.name}.", "Export the graph again.")
    table = read_parquet(path)
    if missing := [column for column in columns if column not in table.column_names]:
        raise UserError(f"{path} has no column {missing[0]}.", "Export the graph again.")
    if "id" in columns and name != "mentions" and table["id"].to_pylist() != list(range(table.num_rows)):
        raise UserError(f"{path}: the ids do not count from 0.", "Keep the rows of an export in their order.")
    return table


def _incidence(
    table: pa.Table, path: Path, names: tuple[str, str], shape: tuple[int, int], mask: NDArray[np.bool_] | None
) -> Incidence:
    sides: list[NDArray[Any]] = []
    for name, size in zip(names, shape, strict=True):
        column = table[name]
        if column.null_count or not pa.types.is_integer(column.type):
            raise UserError(f"{path}: the column {name} holds something that is no id.", "Export the graph again.")
        values = np.asarray(column.to_numpy(), np.int64)
        values = values if mask is None else values[mask]
        if len(values) and not 0 <= values.min() <= values.max() < size:
            raise UserError(f"{path}: an id in the column {name} is not among the {size:,} there are.", "Export again.")
        sides.append(values)
    return incidence(sides[0], sides[1], shape)


def check_graph(graph: Graph, place: Path) -> None:
    """Raise UserError where a graph that was read is none: unknown ends or kinds, missing columns, wrong sizes."""

    def fail(what: str) -> UserError:
        return UserError(f"{place}: {what}.", "Give a folder that this program wrote, unchanged.")

    for table, rows, wanted in (
        ("nodes", graph.nodes, ["name"]),
        ("relationships", graph.relationships, ["source", "target", "kind", "name", "weight"]),
    ):
        if missing := [name for name in wanted if name not in rows.column_names or rows[name].null_count]:
            raise fail(f"the {table} have no column {missing[0]}, or holes in it")
    if unknown := sorted(set(map(str, graph.relationships["kind"].unique().to_pylist())) - set(KINDS)):
        raise fail(f"there is no kind of relationship {unknown[0]!r}")
    for name in ("source", "target"):
        column = graph.relationships[name]
        if not pa.types.is_integer(column.type):
            raise fail(f"the column {name} of the relationships holds no ids")
        ends = column.to_numpy()
        if len(ends) and not 0 <= ends.min() <= ends.max() < graph.n_nodes:
            raise fail(f"a relationship's {name} is none of the {graph.n_nodes:,} nodes")
    if not (pa.types.is_floating(graph.relationships["weight"].type) and np.isfinite(graph.weights).all()):
        raise fail("a relationship's weight is no finite number")
    shapes = graph.node_chunk.shape, graph.relationship_chunk.shape
    if shapes != ((graph.n_nodes, graph.n_chunks), (graph.n_relationships, graph.n_chunks)):
        raise fail("the incidences are of other sizes than the tables")
    if graph.hierarchy is not None:
        count = len(graph.hierarchy)
        parents = graph.hierarchy.parent
        if graph.hierarchy.members.shape != (count, graph.n_nodes) or len(parents) != count:
            raise fail("the communities are of other sizes than the nodes")
        if count and not -1 <= parents.min() <= parents.max() < count:
            raise fail("a community's parent is none of the communities")
        if graph.reports is not None and len(graph.reports) != count:
            raise fail(f"there are {len(graph.reports):,} reports on {count:,} communities")
    if graph.reports is not None and graph.reports.table.column_names != REPORT_SCHEMA.names:
        raise fail("the reports have other columns")


def rechunked(matrix: Incidence, place: NDArray[np.int64], n_chunks: int) -> Incidence:
    """Return an incidence whose column ``c`` stands at ``place[c]`` (-1: nowhere) of ``n_chunks`` columns."""
    pairs = sparse.coo_array(matrix)
    columns = place[pairs.col]
    keep = columns >= 0
    return incidence(pairs.row[keep], columns[keep], (matrix.shape[0], n_chunks))
