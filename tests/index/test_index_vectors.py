"""Exact vector search against sorting every cosine, and that a batch is its questions one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index import vectors as module
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors, VectorIndex


def unit(rng, n, dim):
    made = rng.normal(size=(n, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_equals_sorting_every_cosine(seed, top_k):
    rng = np.random.default_rng(seed)
    matrix = unit(rng, int(rng.integers(1, 25)), 6)
    matrix = matrix[rng.integers(0, len(matrix), len(matrix))]  # twins and triplets
    queries = unit(rng, 3, 6)
    for query, (ids, scores) in zip(queries, VectorIndex(matrix, None).nearest(queries, top_k), strict=True):
        cosines = {n: round(float(row.astype(float) @ query.astype(float)), 6) for n, row in enumerate(matrix)}
        wanted = sorted(cosines, key=lambda n: (-cosines[n], n))[:top_k]
        assert ids.tolist() == wanted
        np.testing.assert_allclose(scores, [cosines[n] for n in wanted], atol=2e-6)


def test_a_row_does_not_depend_on_its_batch_mates_to_the_last_bit(monkeypatch):
    rng = np.random.default_rng(0)
    index = VectorIndex(unit(rng, 2500, 384), None)
    queries = unit(rng, 24, 384)
    whole = index.nearest(queries, 20)
    monkeypatch.setattr(module, "_BLOCK", 5 * 2500)  # blocks of five
    for apart in (index.nearest(queries, 20), [index.nearest(queries[n : n + 1], 20)[0] for n in range(24)]):
        for (ids, scores), (other_ids, other_scores) in zip(whole, apart, strict=True):
            assert ids.tolist() == other_ids.tolist()
            assert scores.tolist() == other_scores.tolist()


def test_equal_vectors_stand_by_id_wherever_they_lie_in_the_matrix():
    rng = np.random.default_rng(1)
    matrix = unit(rng, 400, 384)
    twins = [3, 77, 199, 398]
    matrix[twins] = matrix[3]
    query = unit(rng, 1, 384) * 0.2 + matrix[3]
    for top_k in (1, 2, 3, 4):
        assert VectorIndex(matrix, None).nearest(query, top_k)[0][0].tolist() == twins[:top_k]


def test_no_vectors_no_queries_and_no_places():
    empty = VectorIndex(np.empty((0, 4), np.float32), None)
    one = VectorIndex(np.array([[1, 0]], np.float32), None)
    ((ids, scores),) = empty.nearest(np.ones((1, 4), np.float32), 3)
    assert (len(ids), len(scores), len(empty)) == (0, 0, 0)
    assert one.nearest(np.empty((0, 2), np.float32), 3) == []
    ((ids, _),) = one.nearest(np.array([[0, 1]], np.float32), 0)
    assert ids.tolist() == []
    ((ids, scores),) = one.nearest(np.array([[0, 1]], np.float32), 3)
    assert (ids.tolist(), scores.tolist()) == ([0], [0.0])


@pytest.mark.parametrize("kind", [NodeVectors, ChunkVectors])
def test_texts_are_embedded_as_queries_by_the_embedder_that_made_the_vectors(kind):
    class Fixed:
        def embed(self, texts, role):
            assert role == "query"
            return np.array([[1, 0] if text == "x" else [0, 1] for text in texts], np.float32)

    index = kind(np.eye(2, dtype=np.float32), Fixed())
    assert [ids.tolist() for ids, _ in index.search(["x", "y"], 1)] == [[0], [1]]
    assert len(index) == 2
