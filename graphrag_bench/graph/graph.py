"""The Graph container: columns for nodes, relationships and chunks, and the sparse incidences between them.

Immutable once built, a directed multigraph: direction, parallel relationships and Unicode names are kept. Operators that
want an undirected simple graph ask for that view (`adjacency`). Saved as Parquet and uncompressed npz, opened memory-mapped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.store.arrays import load_arrays, save_arrays

KINDS = ("fact", "synonym", "is_a", "member", "passage")
Incidence = sparse.csr_array


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph over a corpus.

    Attributes:
        nodes: a table with at least ``name``; one row a node.
        relationships: a table with ``source``, ``target`` (node ids), ``kind`` (see KINDS), ``name``, ``weight``.
        node_chunk: (nodes, chunks), 1 where the node occurs in the chunk.
        relationship_chunk: (relationships, chunks), 1 where the relationship was found in the chunk.
        attributes: which columns of the unified paper's Table 2 it carries, as ``node.name``, ``relationship.weight`` …
    """

    nodes: pa.Table
    relationships: pa.Table
    node_chunk: Incidence
    relationship_chunk: Incidence
    attributes: frozenset[str]

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

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return the names of nodes."""
        return [str(name) for name in self.nodes["name"].take(pa.array(ids, pa.int64())).to_pylist()]

    def adjacency(self, weighted: bool = True) -> Incidence:
        """Return the undirected simple view: a symmetric (n, n) matrix, parallel relationships merged, no loops.

        Args:
            weighted: sum the weights of what joins two nodes; else 1 where anything does.
        """
        cache: dict[bool, Incidence] = self.__dict__.setdefault("_adjacency", {})
        if weighted not in cache:
            keep = self.sources != self.targets
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
        }

    def save(self, folder: Path) -> None:
        """Write the graph into an existing folder."""
        meta = {b"attributes": ",".join(sorted(self.attributes)).encode()}
        pq.write_table(self.nodes.replace_schema_metadata(meta), folder / "nodes.parquet", compression="zstd")
        pq.write_table(self.relationships, folder / "relationships.parquet", compression="zstd")
        save_arrays(
            folder / "incidence.npz",
            {**_pack("node_chunk", self.node_chunk), **_pack("relationship_chunk", self.relationship_chunk)},
        )

    @classmethod
    def open(cls, folder: Path) -> "Graph":
        """Open a saved graph, memory-mapped."""
        nodes = pq.read_table(folder / "nodes.parquet", memory_map=True)
        relationships = pq.read_table(folder / "relationships.parquet", memory_map=True)
        arrays = load_arrays(folder / "incidence.npz")
        attributes = (nodes.schema.metadata or {}).get(b"attributes", b"").decode()
        return cls(
            nodes,
            relationships,
            _unpack("node_chunk", arrays),
            _unpack("relationship_chunk", arrays),
            frozenset(attributes.split(",")) - {""},
        )


def _pack(name: str, matrix: Incidence) -> dict[str, NDArray[Any]]:
    return {
        f"{name}.indptr": matrix.indptr,
        f"{name}.indices": matrix.indices,
        f"{name}.data": matrix.data,
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
    }


def _unpack(name: str, arrays: Mapping[str, NDArray[Any]]) -> Incidence:
    rows, columns = (int(side) for side in arrays[f"{name}.shape"])
    return sparse.csr_array((arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"]), shape=(rows, columns))


def incidence(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Incidence:
    """Return a binary CSR matrix with sorted indices from (row, column) pairs, duplicates merged."""
    matrix = sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape).tocsr()
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix
