"""chunk.near_nodes against a plain loop."""

import numpy as np
import pytest

from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from operators.chunk.near_nodes import near_nodes


def cosine(vector, question):
    return round(float(vector.astype(float) @ question.astype(float)), 6)


def loop(graph, keys, vectors, question, candidates):
    seen: list[int] = []
    for node in keys:
        chunks = np.flatnonzero(graph.node_chunk.toarray()[node]).tolist()
        for chunk in sorted(chunks, key=lambda c: (-cosine(vectors[c], question), c)):
            if chunk not in seen:
                seen.append(chunk)
    return sorted(seen[:candidates], key=lambda c: (-cosine(vectors[c], question), c))


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_loop_over_nodes_and_their_chunks(small, seed):
    graph = small.random_graph(seed)
    rng = np.random.default_rng(seed)
    texts = {f"q{n}": rng.integers(-2, 3, 3) + 0.5 for n in range(4)}
    vectors = rng.integers(-2, 3, (graph.n_chunks, 3)) + 0.5
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = ChunkVectors(vectors, small.Table(texts))
    rows = [list(dict.fromkeys(ids)) for ids, _ in small.random_rows(seed, graph.n_nodes)]
    nodes = Nodes.of_rows([(row, [1.0 / place for place in range(1, len(row) + 1)]) for row in rows])
    questions = Questions(tuple(texts), tuple(texts))
    candidates = int(rng.integers(1, 6))
    found = near_nodes(graph, questions, nodes, index, candidates=candidates)
    for number, (row, keys) in enumerate(zip(found, rows, strict=True)):
        question = index.embedder.embed([f"q{number}"])[0]
        assert row.ids.tolist() == loop(graph, keys, vectors, question, candidates)
        assert row.scores == pytest.approx([cosine(vectors[c], question) for c in row.ids], abs=2e-6)
    cut = near_nodes(graph, questions, nodes, index, candidates=candidates, top_k=1)
    assert [row.ids.tolist() for row in cut] == [row.ids.tolist()[:1] for row in found]


def test_a_failed_question_is_skipped(small):
    graph = small.graph_of(1, [], [(0, 0)])
    index = ChunkVectors(np.array([[1.0, 0.0]], np.float32), small.Table({"a": [1, 0], "b": [1, 0]}))
    questions = Questions(("1", "2"), ("a", "b"), failed={0: "x: y"})
    found = near_nodes(graph, questions, Nodes.of_rows([([0], [1.0])] * 2), index)
    assert [row.ids.tolist() for row in found] == [[], [0]]
