"""Personalised PageRank against networkx's power iteration and a dense solve of its definition."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.walks import personalised_pagerank

DAMPINGS = [0.0, 0.3, 0.5, 0.85, 0.99]


def random_graph(seed):
    """Sparse enough to leave isolated nodes and several components."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 1.5 / n), 1)
    return sparse.csr_array(weights + weights.T), rng


def solved(adjacency, restart, damping):
    """p = damping (M p + what the isolated nodes hold, at the restart) + (1 - damping) restart, by elimination."""
    dense = adjacency.toarray()
    degree = dense.sum(axis=0)
    walk = np.divide(dense, degree, out=np.zeros_like(dense), where=degree > 0)
    v = restart / restart.sum()
    walk[:, degree == 0] = v[:, None]
    return linalg.solve(np.eye(len(v)) - damping * walk, (1 - damping) * v)


def by_networkx(adjacency, restart, damping):
    graph = nx.from_scipy_sparse_array(adjacency)
    ranks = nx.pagerank(
        graph, alpha=damping, personalization=dict(enumerate(restart)), weight="weight", tol=1e-13, max_iter=20000
    )
    return np.array([ranks[node] for node in range(len(restart))])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DAMPINGS))
def test_equals_networkx_and_the_dense_solution(seed, damping):
    adjacency, rng = random_graph(seed)
    n = adjacency.shape[0]
    restart = rng.random((3, n)) * (rng.random((3, n)) < 0.4)
    restart[:, 0] += 0.1  # a restart somewhere
    restart[1] *= 1000.0  # of any scale
    found = personalised_pagerank(adjacency, restart, damping)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    for row in range(3):
        np.testing.assert_allclose(found[row], solved(adjacency, restart[row], damping), atol=1e-9)
        np.testing.assert_allclose(found[row], by_networkx(adjacency, restart[row], damping), atol=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DAMPINGS))
def test_a_row_does_not_depend_on_its_batch_mates_to_the_last_bit(seed, damping):
    adjacency, rng = random_graph(seed)
    restart = rng.random((70, adjacency.shape[0]))  # more than two blocks
    restart[5] = restart[40] = 0.0
    whole = personalised_pagerank(adjacency, restart, damping)
    for row in (0, 5, 31, 32, 33, 69):
        np.testing.assert_array_equal(personalised_pagerank(adjacency, restart[row : row + 1], damping)[0], whole[row])
    backwards = personalised_pagerank(adjacency, restart[::-1], damping)[::-1]
    np.testing.assert_array_equal(backwards, whole)


def test_a_path_by_hand():
    # 0 - 1, restart at 0, damping 1/2: p0 = 1/2 p1 + 1/2 and p1 = 1/2 p0, so p = (2/3, 1/3)
    path = sparse.csr_array(np.array([[0.0, 7.0], [7.0, 0.0]]))
    np.testing.assert_allclose(personalised_pagerank(path, np.array([[5.0, 0.0]]), 0.5), [[2 / 3, 1 / 3]], atol=1e-10)


def test_one_node_keeps_everything():
    alone = sparse.csr_array((1, 1))
    for damping in DAMPINGS:
        np.testing.assert_allclose(personalised_pagerank(alone, np.array([[3.0]]), damping), [[1.0]])


def test_a_row_without_restart_is_a_row_of_zeros():
    adjacency = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    found = personalised_pagerank(adjacency, np.array([[0.0, 0.0], [1.0, 0.0]]), 0.85)
    assert found[0].tolist() == [0.0, 0.0]
    assert found[1].sum() == pytest.approx(1.0)
    assert personalised_pagerank(adjacency, np.zeros((0, 2)), 0.85).shape == (0, 2)


def test_what_the_restart_cannot_reach_has_exactly_nothing():
    adjacency = sparse.csr_array(np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float))
    found = personalised_pagerank(adjacency, np.array([[1.0, 0, 0, 0]]), 0.99)
    assert found[0, 2:].tolist() == [0.0, 0.0]


def test_damping_of_nought_is_the_restart_itself():
    adjacency, rng = random_graph(3)
    restart = rng.random((2, adjacency.shape[0]))
    np.testing.assert_allclose(
        personalised_pagerank(adjacency, restart, 0.0), restart / restart.sum(axis=1, keepdims=True)
    )


@pytest.mark.parametrize("damping", [1.0, 1.5, -0.1, float("nan")])
def test_a_damping_that_is_no_probability_below_one_is_refused(damping):
    with pytest.raises(OperatorFailure, match="damping"):
        personalised_pagerank(sparse.csr_array((2, 2)), np.ones((1, 2)), damping)
