"""chunk.from_rel, chunk.of_nodes and chunk.all against loops."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes, Relationships
from operators.chunk.all import every
from operators.chunk.from_rel import from_rel
from operators.chunk.of_nodes import of_nodes


def in_order(small, scores, held, top_k):
    """The chunks of the first element by id, then the new ones of the second; one over the place, shared by an element's."""
    row = []
    for identity, _ in small.ranked(scores):
        new = sorted(set(held[identity].nonzero()[0].tolist()) - {chunk for chunk, _ in row})
        row += [(chunk, 1 / (1 + len(row))) for chunk in new]
    return row[:top_k]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([None, 1, 3, 50]))
def test_in_the_order_of_what_brings_them(small, seed, top_k):
    graph = small.random_graph(seed)
    for kind, operator, matrix in (
        (Relationships, from_rel, graph.relationship_chunk),
        (Nodes, of_nodes, graph.node_chunk),
    ):
        rows = small.random_rows(seed, matrix.shape[0])
        found = operator(graph, kind.of_rows(rows), top_k=top_k)
        for row, scores in zip(found, map(small.naive, rows), strict=True):
            assert small.pairs(row) == in_order(small, scores, matrix.toarray(), top_k)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(["sum", "max"]), top_k=st.sampled_from([None, 1, 3]))
def test_sum_and_best_of_the_nodes(small, seed, rule, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    held = graph.node_chunk.toarray()
    for row, scores in zip(
        of_nodes(graph, Nodes.of_rows(rows), rule=rule, top_k=top_k), map(small.naive, rows), strict=True
    ):
        parts = {c: [s for n, s in scores.items() if held[n, c]] for c in range(graph.n_chunks)}
        wanted = {c: sum(part) if rule == "sum" else max(part) for c, part in parts.items() if part}
        assert small.pairs(row) == small.ranked(wanted, top_k)


def test_order_is_not_score_order_where_scores_tie(small):
    graph = small.graph_of(2, [(0, 1, "fact", 1.0), (0, 1, "fact", 1.0)], [(0, 2), (1, 0)], [(0, 2), (1, 1), (1, 0)], 3)
    tied = [([0, 1], [0.5, 0.5])]
    assert small.pairs(from_rel(graph, Relationships.of_rows(tied)).row(0)) == [(2, 1.0), (0, 1 / 2), (1, 1 / 2)]
    assert of_nodes(graph, Nodes.of_rows(tied)).row(0).ids.tolist() == [2, 0]
    assert of_nodes(graph, Nodes.of_rows(tied), rule="sum").row(0).ids.tolist() == [0, 2]


def test_a_sum_that_is_zero_is_still_there(small):
    graph = small.graph_of(2, [], [(0, 0), (1, 0)])
    assert small.pairs(of_nodes(graph, Nodes.of_rows([([0, 1], [0.5, -0.5])]), rule="sum").row(0)) == [(0, 0.0)]


@pytest.mark.parametrize("top_k", [None, 2, 9])
def test_all_are_all_in_the_corpus_order(small, top_k):
    chunks = tuple(Chunk(number, "text", "", (), 1) for number in range(3))
    found = every(chunks, Questions(("a", "b"), ("?", "?"), failed={0: "no"}), top_k=top_k)
    assert [row.ids.tolist() for row in found] == [[], [0, 1, 2][:top_k]]
    assert set(found.scores.tolist()) == {1.0}
