"""Small graphs written by hand, and the folder of real datasets where there is one."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import Graph, incidence


def graph_of(n, edges, *, names=None, descriptions=None, types=None, node_chunk=(), chunks=1):
    """Make a graph of (source, target[, weight[, name[, description[, kind]]]]), weight 1, name r and kind fact if not given."""
    full = [(*edge, *(1.0, "r", "", "fact")[len(edge) - 2 :]) for edge in edges]
    nodes = {"name": pa.array(names or [f"n{i}" for i in range(n)], pa.string())}
    if descriptions:
        nodes["description"] = pa.array(descriptions, pa.string())
    if types:
        nodes["type"] = pa.array(types, pa.string())
    columns = list(zip(*full, strict=True)) or [()] * 6
    kinds = (pa.int32(), pa.int32(), pa.float32(), pa.string(), pa.string(), pa.string())
    titles = ("source", "target", "weight", "name", "description", "kind")
    where = np.array(list(node_chunk), dtype=np.int64).reshape(-1, 2)
    return Graph(
        nodes=pa.table(nodes),
        relationships=pa.table(
            {title: pa.array(list(c), kind) for title, c, kind in zip(titles, columns, kinds, strict=True)}
        ),
        node_chunk=incidence(where[:, 0], where[:, 1], (n, chunks)),
        relationship_chunk=sparse.csr_array((len(full), chunks), dtype=np.float32),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )


def hierarchy_of(n, *communities):
    """Make a hierarchy of (level, parent, nodes)."""
    rows = [row for row, (_, _, nodes) in enumerate(communities) for _ in nodes]
    columns = [node for _, _, nodes in communities for node in nodes]
    return Hierarchy(
        np.array([level for level, _, _ in communities], dtype=np.int32),
        np.array([parent for _, parent, _ in communities], dtype=np.int32),
        incidence(np.array(rows), np.array(columns), (len(communities), n)),
    )


@pytest.fixture(scope="session")
def small() -> SimpleNamespace:
    """The helpers of this folder."""
    return SimpleNamespace(graph_of=graph_of, hierarchy_of=hierarchy_of)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real datasets: the folder named by GRAPHRAG_BENCH_DATA, or shared/data beside the repository."""
    named = os.environ.get("GRAPHRAG_BENCH_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real datasets are not here (set GRAPHRAG_BENCH_DATA)")
    return folder
