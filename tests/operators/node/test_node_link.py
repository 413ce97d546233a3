"""node.link: each entity's most similar nodes, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from operators.node.link import link

TEXTS = "abcdefgh"


def questions(rows, failed=None):
    ids = tuple(f"q{n}" for n in range(len(rows)))
    return Questions(ids, tuple(f"about {i}?" for i in ids), tuple(map(tuple, rows)), failed=failed or {})


def scene(small, seed):
    """A random graph, vectors with a pair of twins among them, and questions of random entities."""
    rng = np.random.default_rng(seed)
    graph = small.random_graph(seed)
    matrix = rng.normal(size=(graph.n_nodes, 5))
    matrix[-1] = matrix[0]
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    embedder = small.Table({text: rng.normal(size=5) for text in TEXTS})
    asked = [[str(t) for t in rng.choice(list(TEXTS), int(rng.integers(0, 4)))] for _ in range(5)]
    return graph, NodeVectors(matrix.astype(np.float32), embedder), embedder, asked


def expected(small, graph, vectors, embedder, entities, top_k, weight, least):
    best = {}
    for entity in entities:
        cosines = {
            n: round(float(np.dot(vectors.matrix[n].astype(float), embedder.vectors[entity].astype(float))), 6)
            for n in range(graph.n_nodes)
        }
        for node, cosine in small.ranked(cosines, top_k):
            if cosine >= least:
                chunks = max(int(graph.node_chunk.toarray()[node].sum()), 1)
                score = cosine if weight == "similarity" else 1 / chunks
                best[node] = max(score, best.get(node, score))
    return small.ranked(best)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    top_k=st.integers(1, 12),
    weight=st.sampled_from(["similarity", "specificity"]),
    least=st.sampled_from([-1.0, 0.2]),
)
def test_equals_plain_loops(small, seed, top_k, weight, least):
    graph, vectors, embedder, asked = scene(small, seed)
    found = link(graph, questions(asked), vectors, weight=weight, top_k=top_k, min_similarity=least)
    for row, entities in zip(found, asked, strict=True):
        wanted = expected(small, graph, vectors, embedder, entities, top_k, weight, least)
        assert row.ids.tolist() == [node for node, _ in wanted]
        np.testing.assert_allclose(row.scores, [score for _, score in wanted], atol=2e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(5)))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, seed, order):
    graph, vectors, _, asked = scene(small, seed)
    whole = link(graph, questions(asked), vectors, top_k=2)
    permuted = link(graph, questions([asked[n] for n in order]), vectors, top_k=2)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, row in enumerate(asked):
        same(link(graph, questions([row]), vectors, top_k=2), Nodes.of_rows([whole.row(number)]))


def tiny(small):
    """Three nodes; node 2 is node 1's twin; node 0 is in two chunks, the others in one and in none."""
    graph = small.graph_of(3, [], [(0, 0), (0, 1), (1, 1)], chunks=2)
    matrix = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    return graph, NodeVectors(matrix, small.Table({"x": [1.0, 0.0], "y": [0.0, 1.0], "mid": [1.0, 1.0]}))


def test_by_hand(small):
    graph, vectors = tiny(small)
    found = link(graph, questions([["x", "y"], ["y", "y"], [], ["mid"]]), vectors)
    assert [small.pairs(row) for row in found] == [
        [(0, 1.0), (1, 1.0)],  # twins: the smaller id
        [(1, 1.0)],  # the same entity twice is one seed
        [],
        [(0, pytest.approx(0.707107))],
    ]
    # node 0 lies in two chunks, node 1 in one, node 2 in none (counted as one)
    special = link(graph, questions([["x", "y"]]), vectors, weight="specificity", top_k=3)
    assert small.pairs(special.row(0)) == [(1, 1.0), (2, 1.0), (0, 0.5)]


def test_two_entities_on_one_node_keep_the_better_score(small):
    graph, vectors = tiny(small)
    found = link(graph, questions([["mid", "x"]]), vectors)
    assert small.pairs(found.row(0)) == [(0, 1.0)]


def test_what_is_too_far_stays_unlinked(small):
    graph, vectors = tiny(small)
    assert small.pairs(link(graph, questions([["mid", "y"]]), vectors, min_similarity=0.9).row(0)) == [(1, 1.0)]


def test_a_failed_question_has_an_empty_row_and_disturbs_nobody(small):
    graph, vectors = tiny(small)
    found = link(graph, questions([["x"], ["y"], ["x"]], {0: "timeout: 60 s"}), vectors)
    assert [row.ids.tolist() for row in found] == [[], [1], [0]]


def test_no_questions_no_nodes_and_by_question(small):
    graph, vectors = tiny(small)
    assert len(link(graph, questions([]), vectors)) == 0
    none = small.graph_of(0, [])
    empty = NodeVectors(np.empty((0, 2), np.float32), vectors.embedder)
    assert [row.ids.tolist() for row in link(none, questions([["x"], []]), empty, top_k=3)] == [[], []]
    whole = link(graph, Questions(("a",), ("y",)), vectors, by="question")
    assert whole.row(0).ids.tolist() == [1]


def test_entities_are_embedded_as_queries_in_one_go(small):
    graph, vectors = tiny(small)
    link(graph, questions([["x"], ["y"], ["x"]]), vectors)
    assert vectors.embedder.roles == ["query"]
