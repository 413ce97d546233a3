"""node.ppr against networkx on the undirected simple graph made of the relationships by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.values import Nodes
from operators.node.ppr import ppr


def undirected(graph, weighted):
    """Loops dropped, parallel relationships merged: their weights summed, or 1."""
    made = nx.Graph()
    made.add_nodes_from(range(graph.n_nodes))
    for a, b, weight in zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True):
        if a != b:
            before = made.edges[a, b]["weight"] if made.has_edge(a, b) else 0.0
            made.add_edge(a, b, weight=before + weight if weighted else 1.0)
    return made


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), damping=st.sampled_from([0.0, 0.5, 0.85, 0.99]), weighted=st.booleans())
def test_equals_networkx(small, seed, damping, weighted):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = ppr(graph, Nodes.of_rows(rows), damping=damping, weighted=weighted).dense(graph.n_nodes)
    walked = undirected(graph, weighted)
    for number, row in enumerate(rows):
        seeds = small.naive(row)
        if not seeds:
            assert not found[number].any()
            continue
        wanted = nx.pagerank(walked, alpha=damping, personalization=seeds, tol=1e-13, max_iter=20000)
        np.testing.assert_allclose(found[number], [wanted[n] for n in range(graph.n_nodes)], atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)), top_k=st.sampled_from([None, 1, 3, 50]))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, seed, order, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    whole = ppr(graph, Nodes.of_rows(rows), top_k=top_k)
    permuted = ppr(graph, Nodes.of_rows([rows[n] for n in order]), top_k=top_k)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, row in enumerate(rows):
        same(ppr(graph, Nodes.of_rows([row]), top_k=top_k), Nodes.of_rows([whole.row(number)]))


def test_the_leaves_of_a_star_tie_and_stand_by_id(small):
    star = small.graph_of(4, [(3, 2, "fact", 1.0), (3, 0, "fact", 1.0), (1, 3, "synonym", 1.0)])
    # restart at the middle m, damping 1/2: m = 1/2 (leaves) + 1/2, leaves = 1/2 m: m = 2/3, each leaf 1/9
    found = ppr(star, Nodes.of_rows([([3], [9.0])]), damping=0.5).row(0)
    assert found.ids.tolist() == [3, 0, 1, 2]
    np.testing.assert_allclose(found.scores, [2 / 3, 1 / 9, 1 / 9, 1 / 9], atol=1e-10)
    assert ppr(star, Nodes.of_rows([([3], [9.0])]), damping=0.5, top_k=2).row(0).ids.tolist() == [3, 0]


def test_weights_count_unless_told_otherwise(small):
    graph = small.graph_of(3, [(0, 1, "fact", 3.0), (0, 2, "fact", 1.0)])
    seeds = Nodes.of_rows([([0], [1.0])])
    weighted = ppr(graph, seeds, damping=0.5).row(0)
    np.testing.assert_allclose(weighted.scores, [2 / 3, 1 / 4, 1 / 12], atol=1e-10)
    np.testing.assert_allclose(
        ppr(graph, seeds, damping=0.5, weighted=False).row(0).scores, [2 / 3, 1 / 6, 1 / 6], atol=1e-10
    )


def test_isolated_single_duplicate_and_negative_seeds(small):
    graph = small.graph_of(3, [(0, 1, "fact", 1.0)])
    rows = [([2], [0.3]), ([0, 0, 0], [1.0, 0.5, 1.0]), ([0], [1.0]), ([0, 2], [1.0, -4.0]), ([1], [-1.0])]
    found = ppr(graph, Nodes.of_rows(rows), damping=0.5)
    assert small.pairs(found.row(0)) == [(2, pytest.approx(1.0))]  # nowhere to go
    assert small.pairs(found.row(1)) == small.pairs(found.row(2))  # said three times is said once
    assert small.pairs(found.row(3)) == small.pairs(found.row(2))  # a negative seed is none
    assert found.row(4).ids.tolist() == []
    one = small.graph_of(1, [])
    assert small.pairs(ppr(one, Nodes.of_rows([([0], [2.0])]), top_k=5).row(0)) == [(0, pytest.approx(1.0))]


def test_no_questions_and_no_nodes(small):
    assert len(ppr(small.graph_of(2, []), Nodes.empty(0))) == 0
    assert [row.ids.tolist() for row in ppr(small.graph_of(0, []), Nodes.empty(2))] == [[], []]


def test_a_damping_of_one_serves_no_question(small):
    with pytest.raises(OperatorFailure, match="damping"):
        ppr(small.graph_of(2, []), Nodes.of_rows([([0], [1.0])]), damping=1.0)
