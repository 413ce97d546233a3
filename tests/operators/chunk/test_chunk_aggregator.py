"""chunk.aggregator against a loop over the relationship-chunk pairs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Chunks, Relationships
from operators.chunk.aggregator import aggregator


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([None, 1, 2, 100]))
def test_equals_a_loop_over_the_pairs(small, seed, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_relationships)
    found = aggregator(graph, Relationships.of_rows(rows), top_k=top_k)
    held = graph.relationship_chunk.toarray()
    for row, relationships in zip(found, map(small.naive, rows), strict=True):
        scores = {}
        for number, score in relationships.items():
            for chunk in range(graph.n_chunks):
                if held[number, chunk]:
                    scores[chunk] = scores.get(chunk, 0.0) + score
        assert small.pairs(row) == small.ranked(scores, top_k)  # scores are quarters: their sums are exact


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, seed, order):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_relationships)
    whole = aggregator(graph, Relationships.of_rows(rows), top_k=2)
    permuted = aggregator(graph, Relationships.of_rows([rows[n] for n in order]), top_k=2)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, row in enumerate(rows):
        same(aggregator(graph, Relationships.of_rows([row]), top_k=2), Chunks.of_rows([whole.row(number)]))


def test_by_hand(small):
    # relationship 0 was found in chunks 0 and 2, relationship 1 in chunk 2, relationship 2 in chunk 1; chunk 3 holds none
    graph = small.graph_of(
        2,
        [(0, 1, "fact", 1.0), (1, 0, "fact", 1.0), (0, 0, "fact", 1.0)],
        edge_chunk=[(0, 0), (0, 2), (1, 2), (2, 1)],
        chunks=4,
    )
    found = aggregator(graph, Relationships.of_rows([([0, 1, 2], [0.5, 0.25, 0.5]), ([], [])]))
    assert small.pairs(found.row(0)) == [(2, 0.75), (0, 0.5), (1, 0.5)]
    assert found.row(1).ids.tolist() == []


@pytest.mark.parametrize("size", [0, 2])
def test_nothing_in_nothing_out(small, size):
    graph = small.graph_of(1, [], chunks=2)
    assert [row.ids.tolist() for row in aggregator(graph, Relationships.empty(size))] == [[]] * size
