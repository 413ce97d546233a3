"""A graph with layers of summary entities put above its nodes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy import sparse

from graphrag_bench.graph.extraction import EntityRecord
from graphrag_bench.graph.graph import Graph, Incidence

MEMBER = "sums up"


def layered(
    graph: Graph, summaries: Sequence[EntityRecord], layer: Sequence[int], members: Sequence[tuple[int, int]]
) -> Graph:
    """Return the graph with summary nodes behind its own, each joined to its members by relationships of kind ``member``.

    A summary occurs in no chunk of its own.

    Args:
        graph: of described entities; its nodes are layer 0.
        summaries: the summary entities.
        layer: of every node, those of the graph first.
        members: (summary node, member node).
    """
    names = [*graph.column("nodes", "name"), *(entity.name for entity in summaries)]
    count = len(members)
    pairs = np.array(members, np.int64).reshape(-1, 2)
    columns = {
        "source": pa.array(pairs[:, 0], pa.int32()),
        "target": pa.array(pairs[:, 1], pa.int32()),
        "kind": pa.array(["member"] * count, pa.string()),
        "name": pa.array([MEMBER] * count, pa.string()),
        "weight": pa.array(np.ones(count), pa.float32()),
        "description": pa.array([f"{names[one]} {MEMBER} {names[two]}." for one, two in members], pa.string()),
    }
    relationships = pa.concat_tables(
        [graph.relationships, pa.table({name: columns[name] for name in graph.relationships.column_names})]
    )
    table: dict[str, pa.Array] = {"name": pa.array(names, pa.string())}
    for column, values in (
        ("type", [entity.type for entity in summaries]),
        ("description", [entity.description for entity in summaries]),
    ):
        table[column] = pa.array([*graph.column("nodes", column), *values], pa.string())
    table["layer"] = pa.array(layer, pa.int32())
    return replace(
        graph,
        nodes=pa.table(table),
        relationships=relationships.combine_chunks(),
        node_chunk=_longer(graph.node_chunk, len(names)),
        relationship_chunk=_longer(graph.relationship_chunk, relationships.num_rows),
        attributes=graph.attributes | {"node.layer"},
    )


def _longer(held: Incidence, rows: int) -> Incidence:
    """Return an incidence with empty rows behind its own."""
    indptr = np.concatenate([held.indptr, np.full(rows + 1 - len(held.indptr), held.indptr[-1], held.indptr.dtype)])
    return sparse.csr_array((held.data, held.indices, indptr), shape=(rows, held.shape[1]))
