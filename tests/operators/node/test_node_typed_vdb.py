"""node.typed_vdb: the nearest nodes of some types, or of all others."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import Questions
from operators.node.typed_vdb import typed_vdb


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("but", [False, True])
def test_it_is_the_whole_order_with_other_types_left_out(small, seed, but):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    kinds = rng.choice(["keyword", "Person", ""], n).tolist()
    graph = small.graph_of(n, [])
    graph = replace(graph, nodes=graph.nodes.append_column("type", pa.array(kinds)))
    vectors = rng.normal(size=(n, 3))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = NodeVectors(vectors, small.Table({"q": rng.normal(size=3)}))
    (row,) = typed_vdb(graph, Questions(("1",), ("q",)), index, types=["KEYWORD"], but=but, top_k=3)
    allowed = [node for node in range(n) if (kinds[node] == "keyword") != but]
    question = index.embedder.embed(["q"])[0]
    order = sorted(allowed, key=lambda node: (-float(vectors[node] @ question), node))
    assert row.ids.tolist() == order[:3]
