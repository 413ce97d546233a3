"""node.ppr against networkx on the undirected simple graph made of the relationships by hand."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.values import Nodes
from operators.node import ppr as module
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


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, float("nan")])
@pytest.mark.parametrize("solver", ["auto", "exact", "reduced"])
def test_a_tolerance_that_cannot_be_kept_serves_no_question(small, tolerance, solver):
    with pytest.raises(OperatorFailure, match="tolerance is a share"):
        ppr(small.graph_of(2, []), Nodes.of_rows([([0], [1.0])]), solver=solver, tolerance=tolerance)


def test_a_damping_of_one_is_refused_by_the_reduced_solver_too(small):
    with pytest.raises(OperatorFailure, match="damping"):
        ppr(small.graph_of(2, []), Nodes.of_rows([([0], [1.0])]), damping=1.0, solver="reduced")


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), damping=st.sampled_from([0.0, 0.5, 0.85, 0.99]), weighted=st.booleans())
def test_the_reduced_solver_keeps_its_tolerance(small, seed, damping, weighted):
    graph = small.random_graph(seed)
    seeds = Nodes.of_rows(small.random_rows(seed, graph.n_nodes))
    exact = ppr(graph, seeds, damping=damping, weighted=weighted, solver="exact").dense(graph.n_nodes)
    for tolerance in (1e-2, 1e-7):
        found = ppr(graph, seeds, damping=damping, weighted=weighted, solver="reduced", tolerance=tolerance)
        assert np.abs(found.dense(graph.n_nodes) - exact).sum(axis=1).max(initial=0.0) <= tolerance + 1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)), top_k=st.sampled_from([None, 0, 1, 3, 50]))
def test_the_reduced_solver_too_does_not_depend_on_the_batch(small, same, seed, order, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    whole = ppr(graph, Nodes.of_rows(rows), top_k=top_k, solver="reduced")
    permuted = ppr(graph, Nodes.of_rows([rows[n] for n in order]), top_k=top_k, solver="reduced")
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    again = small.random_graph(seed)
    for number, row in enumerate(rows):
        alone = ppr(again, Nodes.of_rows([row]), top_k=top_k, solver="reduced")
        same(alone, Nodes.of_rows([whole.row(number)]))


def test_the_graph_made_ready_is_the_one_asked_for(small):
    graph = small.graph_of(3, [(0, 1, "fact", 3.0), (0, 2, "fact", 1.0)])
    seeds = Nodes.of_rows([([0], [1.0])])
    for damping, weighted in [(0.5, True), (0.5, True), (0.5, False), (0.85, False), (0.5, True)]:
        wanted = ppr(graph, seeds, damping=damping, weighted=weighted, solver="exact").row(0)
        found = ppr(graph, seeds, damping=damping, weighted=weighted, solver="reduced", tolerance=1e-9).row(0)
        np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-9)


@pytest.fixture(scope="module")
def large(small):
    """A graph with a heavy tail, just large enough for ``auto`` to choose; 7 questions."""
    rng = np.random.default_rng(3)
    n = module._LARGE
    towards = (rng.random(2 * n) ** 3 * np.arange(2 * n) / 2).astype(int)
    kind = ["fact"] * (2 * n)
    edges = zip((np.arange(2 * n) // 2).tolist(), towards.tolist(), kind, rng.random(2 * n).tolist(), strict=True)
    graph = small.graph_of(n, list(edges))
    seeds = Nodes.of_rows([(rng.integers(0, n, 3), rng.random(3)) for _ in range(6)] + [([], [])])
    return graph, seeds


@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_a_large_graph_gives_the_same_best_and_no_dense_matrix(large, damping, monkeypatch):
    graph, seeds = large
    exact = ppr(graph, seeds, damping=damping, top_k=20, solver="exact")
    monkeypatch.setattr(Nodes, "dense", None)
    monkeypatch.setattr(module, "personalised_pagerank", None)
    found = ppr(graph, seeds, damping=damping, top_k=20)
    for one, two in zip(found, exact, strict=True):
        assert one.ids.tolist() == two.ids.tolist()
        np.testing.assert_allclose(one.scores, two.scores, atol=1e-6)
    assert len(found.row(6).ids) == 0


def test_what_the_exact_solver_keeps_does_not_depend_on_the_block(large, same, monkeypatch):
    graph, seeds = large
    many = Nodes.of_rows([seeds.row(number % 7) for number in range(70)])
    whole = ppr(graph, many, top_k=3, solver="exact")
    monkeypatch.setattr(module, "_DENSE", 1)
    same(ppr(graph, many, top_k=3, solver="exact"), whole)
    same(whole, ppr(graph, many, solver="exact").top(3))


def test_auto_is_exact_on_a_small_graph_and_where_all_nodes_are_kept(small, same, large, monkeypatch):
    graph = small.random_graph(5)
    seeds = Nodes.of_rows(small.random_rows(5, graph.n_nodes))
    monkeypatch.setattr(module, "reduced_walk", None)
    same(ppr(graph, seeds, top_k=3), ppr(graph, seeds, solver="exact").top(3))
    assert len(ppr(*large)) == 7


@pytest.mark.parametrize("solver", ["exact", "reduced"])
def test_what_has_no_weight_above_zero_is_not_walked(small, solver):
    graph = small.graph_of(4, [(0, 1, "fact", -1.0), (1, 2, "fact", 1.0), (2, 3, "fact", 0.0), (0, 1, "fact", 0.0)])
    seeds = Nodes.of_rows([([0], [1.0]), ([1], [1.0])])
    alone, joined = ppr(graph, seeds, damping=0.5, solver=solver)
    assert (alone.ids.tolist(), alone.scores.tolist()) == ([0], [1.0])
    assert joined.ids.tolist() == [1, 2]
    np.testing.assert_allclose(joined.scores, [2 / 3, 1 / 3], atol=1e-5)
    freely = ppr(graph, seeds, damping=0.5, weighted=False, solver=solver)
    assert [row.ids.tolist() for row in freely] == [[0, 1, 2, 3], [1, 2, 0, 3]]
