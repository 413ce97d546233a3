"""relationship.aggregator against a loop over the relationships."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Nodes, Relationships
from operators.relationship.aggregator import aggregator


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([None, 1, 2, 5, 100]))
def test_equals_a_loop_over_the_facts(small, seed, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = aggregator(graph, Nodes.of_rows(rows), top_k=top_k)
    table = graph.relationships.to_pylist()
    for row, nodes in zip(found, map(small.naive, rows), strict=True):
        scores = {
            number: nodes.get(edge["source"], 0.0) + nodes.get(edge["target"], 0.0)
            for number, edge in enumerate(table)
            if edge["kind"] == "fact"
        }
        assert small.pairs(row) == small.ranked({n: s for n, s in scores.items() if s}, top_k)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, seed, order):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    whole = aggregator(graph, Nodes.of_rows(rows), top_k=3)
    permuted = aggregator(graph, Nodes.of_rows([rows[n] for n in order]), top_k=3)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, row in enumerate(rows):
        same(aggregator(graph, Nodes.of_rows([row]), top_k=3), Relationships.of_rows([whole.row(number)]))


def test_by_hand(small):
    graph = small.graph_of(
        4, [(0, 1, "fact", 9.0), (1, 0, "fact", 1.0), (1, 2, "synonym", 1.0), (2, 2, "fact", 1.0), (3, 1, "fact", 1.0)]
    )
    found = aggregator(graph, Nodes.of_rows([([0, 2], [0.5, 0.25])])).row(0)
    # both directions tie at 0.5 and the loop on node 2 counts both its ends; a synonym is no fact; nothing reaches the last
    assert small.pairs(found) == [(0, 0.5), (1, 0.5), (3, 0.5)]
    assert aggregator(graph, Nodes.of_rows([([0, 2], [0.5, 0.25])]), top_k=2).row(0).ids.tolist() == [0, 1]


def test_a_dense_ranking_and_its_rows_give_the_same(small, same):
    graph = small.random_graph(11)
    dense = np.random.default_rng(1).random((3, graph.n_nodes))
    whole = Nodes.of_dense(dense)
    same(aggregator(graph, whole), aggregator(graph, Nodes.of_rows(list(whole))))


def test_nothing_in_nothing_out(small):
    graph = small.graph_of(2, [(0, 1, "synonym", 1.0)])  # no fact at all
    assert [row.ids.tolist() for row in aggregator(graph, Nodes.of_rows([([0], [1.0]), ([], [])]))] == [[], []]
    assert len(aggregator(graph, Nodes.empty(0))) == 0
    assert [row.ids.tolist() for row in aggregator(small.graph_of(1, []), Nodes.of_rows([([0], [1.0])]))] == [[]]
