"""node.vdb and relationship.vdb against loops over all vectors."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index.vectors import NodeVectors, RelationshipVectors
from graphrag_bench.pipeline.texts import Questions
from operators.node.vdb import vdb as node_vdb
from operators.relationship.vdb import vdb as relationship_vdb


def questions(entities, failed=None):
    ids = tuple(f"q{n}" for n in range(len(entities)))
    return Questions(
        ids, tuple(f"t{n}" for n in range(len(entities))), tuple(map(tuple, entities)), failed=failed or {}
    )


def vectors_of(small, kind, n, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(n, 3))
    matrix[n // 2 :] = matrix[: n - n // 2]  # twins
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return kind(matrix.astype(np.float32), small.Table({t: rng.normal(size=3) for t in ("t0", "t1", "t2", *"abcd")}))


def expected(small, vectors, texts, allowed, top_k, least):
    best = {}
    for text in texts:
        query = vectors.embedder.vectors[text].astype(float)
        cosines = {n: round(float(vectors.matrix[n].astype(float) @ query), 6) for n in allowed}
        for n, score in small.ranked(cosines, top_k):
            if score >= least:
                best[n] = max(score, best.get(n, score))
    return small.ranked(best)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    top_k=st.integers(1, 15),
    least=st.sampled_from([-1.0, 0.2]),
    by=st.sampled_from(["question", "entities"]),
    kinds=st.sampled_from([("fact",), ("synonym",), ("fact", "synonym"), ("is_a",)]),
)
def test_equal_loops(small, seed, top_k, least, by, kinds):
    rng = np.random.default_rng(seed)
    graph = small.random_graph(seed)
    asked = questions([rng.choice(list("abcd"), int(rng.integers(0, 4))).tolist() for _ in range(3)])
    nodes = vectors_of(small, NodeVectors, graph.n_nodes, seed)
    related = vectors_of(small, RelationshipVectors, graph.n_relationships, seed)
    one = node_vdb(asked, nodes, by=by, top_k=top_k, min_similarity=least)
    two = relationship_vdb(graph, asked, related, by=by, kinds=kinds, top_k=top_k, min_similarity=least)
    for number, texts in enumerate(asked.read(by)):
        assert small.pairs(one.row(number)) == expected(small, nodes, texts, range(graph.n_nodes), top_k, least)
        allowed = graph.of_kinds(kinds).tolist()
        assert small.pairs(two.row(number)) == expected(small, related, texts, allowed, top_k, least)


def test_failed_questions_nobody_and_nothing(small):
    vectors = vectors_of(small, NodeVectors, 4, 1)
    found = node_vdb(questions([[], []], {0: "no"}), vectors, top_k=2)
    assert [len(row.ids) for row in found] == [0, 2]
    assert len(node_vdb(questions([]), vectors)) == 0
    graph = small.graph_of(2, [])
    none = RelationshipVectors(np.empty((0, 3), np.float32), vectors.embedder)
    assert [row.ids.tolist() for row in relationship_vdb(graph, questions([[]]), none)] == [[]]


def test_the_queries_are_embedded_once(small):
    graph = small.graph_of(2, [(0, 1, "synonym", 1.0)] * 9 + [(0, 1, "fact", 1.0)])
    vectors = vectors_of(small, RelationshipVectors, 10, 3)
    assert relationship_vdb(graph, questions([["a"], ["b"]]), vectors, top_k=1).ids.tolist() == [9, 9]
    assert vectors.embedder.roles == ["query"]
