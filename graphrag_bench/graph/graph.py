"""The Graph container: columns for nodes, relationships and chunks, and the sparse incidences between them.

Immutable once built, a directed multigraph: direction, parallel relationships and Unicode names are kept. Operators that
want an undirected simple graph ask for that view (`adjacency`). Saved as Parquet and uncompressed npz, opened memory-mapped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.graph.claims import CLAIM_SCHEMA
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.store.arrays import load_arrays, pack, save_arrays, unpack

KINDS = ("fact", "synonym", "is_a", "member", "passage")
ATTRIBUTES = (
    "node.name", "node.type", "node.description", "node.text", "node.layer",
    "relationship.name", "relationship.description", "relationship.keywords", "relationship.weight",
    "community", "community.report",
)
Incidence = sparse.csr_array


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph over a corpus.

    Attributes:
        nodes: a table with at least ``name``, one row a node; ``type`` and ``description`` of entities; ``text`` of passages
            and summaries, and ``layer`` of a tree's nodes (0 for its leaves).
        relationships: a table with ``source``, ``target`` (node ids), ``kind`` (see KINDS), ``name``, ``weight``; where
            extracted, ``description`` and ``keywords`` (one text, joined by commas).
        node_chunk: (nodes, chunks), 1 where the node occurs in the chunk.
        relationship_chunk: (relationships, chunks), 1 where the relationship was found in the chunk.
        attributes: which columns of the unified paper's Table 2 it carries (see ATTRIBUTES).
        hierarchy: its communities, where they were looked for.
        reports: a report a community, where they were written.
        claims: what passages claim of nodes (see claims.CLAIM_SCHEMA), where it was looked for.
    """

    nodes: pa.Table
    relationships: pa.Table
    node_chunk: Incidence
    relationship_chunk: Incidence
    attributes: frozenset[str]
    hierarchy: Hierarchy | None = None
    reports: Reports | None = None
    claims: pa.Table | None = None

    @property
    def n_communities(self) -> int:
        """How many communities."""
        return 0 if self.hierarchy is None else len(self.hierarchy)

    @property
    def communities(self) -> Hierarchy:
        """Its communities; a ValueError where nobody looked for them."""
        if self.hierarchy is None:
            raise ValueError("the graph has no communities")
        return self.hierarchy

    def with_communities(self, hierarchy: Hierarchy, reports: Reports | None) -> "Graph":
        """Return this graph with these communities and, if given, their reports, instead of those it may have had."""
        more = {"community"} | ({"community.report"} if reports is not None else set())
        kept = self.attributes - {"community.report"}
        return replace(self, hierarchy=hierarchy, reports=reports, attributes=kept | more)

    @property
    def n_nodes(self) -> int:
        """How many nodes."""
        return int(self.nodes.num_rows)

    @property
    def n_relationships(self) -> int:
        """How many relationships, of every kind."""
        return int(self.relationships.num_rows)

    @property
    def n_chunks(self) -> int:
        """How many chunks the incidences speak of."""
        return int(self.node_chunk.shape[1])

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """The source node of each relationship."""
        return np.asarray(self.relationships["source"].to_numpy(), dtype=np.int64)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """The target node of each relationship."""
        return np.asarray(self.relationships["target"].to_numpy(), dtype=np.int64)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each relationship."""
        return np.asarray(self.relationships["weight"].to_numpy(), dtype=np.float64)

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each relationship, as its position in KINDS."""
        column = self.relationships["kind"].combine_chunks().dictionary_encode()
        codes = np.array([KINDS.index(name) for name in column.dictionary.to_pylist()] or [0], dtype=np.int8)
        kinds: NDArray[np.int8] = codes[column.indices.to_numpy(zero_copy_only=False)]
        return kinds

    @cached_property
    def facts(self) -> NDArray[np.int64]:
        """The ids of the relationships of kind ``fact``."""
        return np.flatnonzero(self.kinds == KINDS.index("fact"))

    def of_kinds(self, kinds: Iterable[str]) -> NDArray[np.int64]:
        """Return the ids of the relationships of the given kinds, rising."""
        return np.flatnonzero(np.isin(self.kinds, [KINDS.index(kind) for kind in kinds]))

    def column(self, table: Literal["nodes", "relationships"], name: str) -> list[str]:
        """Return a text column as a list, kept; empty texts where the graph has no such column."""
        cache: dict[tuple[str, str], list[str]] = self.__dict__.setdefault("_columns", {})
        if (table, name) not in cache:
            rows = self.nodes if table == "nodes" else self.relationships
            found = rows[name].to_pylist() if name in rows.column_names else [""] * rows.num_rows
            cache[table, name] = [text or "" for text in found]
        return cache[table, name]

    def label(self, relationship: int) -> str:
        """Return what a relationship says of its two ends: its name, or its description where it has no name."""
        return self.column("relationships", "name")[relationship] or self.column("relationships", "description")[relationship]

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return the names of nodes."""
        return [str(name) for name in self.nodes["name"].take(pa.array(ids, pa.int64())).to_pylist()]

    def adjacency(self, weighted: bool = True) -> Incidence:
        """Return the undirected simple view: a symmetric (n, n) matrix, parallel relationships merged, no loops.

        Args:
            weighted: sum the weights of what joins two nodes, where what has no weight above zero joins nothing; else 1
                where anything does.
        """
        cache: dict[bool, Incidence] = self.__dict__.setdefault("_adjacency", {})
        if weighted not in cache:
            keep = (self.sources != self.targets) & ((self.weights > 0) | (not weighted))
            a, b = self.sources[keep], self.targets[keep]
            values = self.weights[keep]
            shape = (self.n_nodes, self.n_nodes)
            half = sparse.coo_array((values, (np.minimum(a, b), np.maximum(a, b))), shape=shape).tocsr()
            if not weighted:
                half.data[:] = 1.0
            full = (half + half.T).tocsr()
            full.sort_indices()
            cache[weighted] = full
        return cache[weighted]

    def statistics(self) -> dict[str, Any]:
        """Return the counts a reader compares with a paper's graph."""
        by_kind = {kind: int((self.kinds == code).sum()) for code, kind in enumerate(KINDS)}
        degree = np.diff(self.adjacency().indptr)
        return {
            "nodes": self.n_nodes,
            "relationships": self.n_relationships,
            "by_kind": {kind: count for kind, count in by_kind.items() if count},
            "chunks": self.n_chunks,
            "chunks_without_node": int((np.diff(self.node_chunk.tocsc().indptr) == 0).sum()),
            "isolated_nodes": int((degree == 0).sum()),
            "mean_degree": round(float(degree.mean()), 3) if self.n_nodes else 0.0,
            **({} if self.claims is None else {"claims": self.claims.num_rows}),
            **({} if self.hierarchy is None else self.hierarchy.statistics()),
        }

    def save(self, folder: Path) -> None:
        """Write the graph into an existing folder."""
        meta = {b"attributes": ",".join(sorted(self.attributes)).encode()}
        pq.write_table(self.nodes.replace_schema_metadata(meta), folder / "nodes.parquet", compression="zstd")
        pq.write_table(self.relationships, folder / "relationships.parquet", compression="zstd")
        save_arrays(
            folder / "incidence.npz",
            {**pack("node_chunk", self.node_chunk), **pack("relationship_chunk", self.relationship_chunk)},
        )
        if self.hierarchy is not None:
            self.hierarchy.save(folder)
        if self.reports is not None:
            self.reports.save(folder)
        if self.claims is not None:
            pq.write_table(self.claims.cast(CLAIM_SCHEMA), folder / "claims.parquet", compression="zstd")

    @classmethod
    def open(cls, folder: Path) -> "Graph":
        """Open a saved graph, memory-mapped."""
        # a file each: read_table would bring in pyarrow's datasets and pandas, which takes longer than reading
        with pq.ParquetFile(folder / "nodes.parquet", memory_map=True) as file:
            nodes = file.read()
        with pq.ParquetFile(folder / "relationships.parquet", memory_map=True) as file:
            relationships = file.read()
        arrays = load_arrays(folder / "incidence.npz")
        attributes = (nodes.schema.metadata or {}).get(b"attributes", b"").decode()
        return cls(
            nodes,
            relationships,
            unpack("node_chunk", arrays),
            unpack("relationship_chunk", arrays),
            frozenset(attributes.split(",")) - {""},
            Hierarchy.open(folder) if (folder / "hierarchy.npz").exists() else None,
            Reports.open(folder) if (folder / "reports.parquet").exists() else None,
            pq.read_table(folder / "claims.parquet", memory_map=True) if (folder / "claims.parquet").exists() else None,
        )


def incidence(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Incidence:
    """Return a binary CSR matrix with sorted indices from (row, column) pairs, duplicates merged."""
    matrix = sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def incidence_of(pairs: Iterable[tuple[int, int]], shape: tuple[int, int]) -> Incidence:
    """Return the `incidence` of (element, chunk) pairs, given one by one."""
    array = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return incidence(array[:, 0], array[:, 1], shape)
