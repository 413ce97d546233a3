"""The reduced walk against the exact solver: its bound, ties, and independence of the batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.reduction import reduce_walk
from graphrag_bench.graph.walks import personalised_pagerank

DAMPINGS = [0.0, 0.3, 0.5, 0.85, 0.99]


def random_adjacency(seed):
    """From all isolated to dense: leaves, chains, loops, several components, weights of several sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    mean = rng.choice([0.5, 1.5, 3.0, 8.0])
    weights = np.triu(rng.random((n, n)) * 10.0 ** rng.integers(-2, 3, (n, n)), 1)
    weights *= rng.random((n, n)) < mean / n
    weights += weights.T
    if seed % 2:
        weights[np.arange(n), np.arange(n)] = rng.random(n) * (rng.random(n) < 0.2)
    return sparse.csr_array(weights), rng


def edges(n, pairs):
    matrix = np.zeros((n, n))
    for a, b in pairs:
        matrix[a, b] = matrix[b, a] = 1.0
    return sparse.csr_array(matrix)


def dense(adjacency, restart, damping, tolerance, top_k=None):
    out = np.zeros(restart.shape)
    for number, (ids, scores) in enumerate(
        reduce_walk(adjacency, damping).rank(sparse.csr_array(restart), tolerance, top_k)
    ):
        assert (scores > 0).all()
        assert np.array_equal(np.lexsort((ids, -scores)), np.arange(len(ids)))
        out[number, ids] = scores
    return out


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DAMPINGS), st.sampled_from([0.3, 1e-2, 1e-5, 1e-9]))
def test_all_scores_together_are_off_by_at_most_the_tolerance(seed, damping, tolerance):
    adjacency, rng = random_adjacency(seed)
    n = adjacency.shape[0]
    restart = rng.random((4, n)) * (rng.random((4, n)) < 0.3)
    restart[1] *= 1000.0
    restart[2] = 0.0
    restart[2, rng.integers(n)] = 0.2
    before = adjacency.copy()
    found = dense(adjacency, restart, damping, tolerance)
    wanted = personalised_pagerank(adjacency, restart, damping, 1e-14)
    assert np.abs(found - wanted).sum(axis=1).max() <= tolerance + 1e-12
    np.testing.assert_array_equal(adjacency.toarray(), before.toarray())
    assert not found[~restart.any(axis=1)].any()


SHAPES = {
    "one node": edges(1, []),
    "two that are apart": edges(2, []),
    "a pair": edges(2, [(0, 1)]),
    "a path": edges(50, [(a, a + 1) for a in range(49)]),
    "a ring": edges(40, [(a, (a + 1) % 40) for a in range(40)]),
    "a star": edges(30, [(7, a) for a in range(30) if a != 7]),
    "a clique": edges(9, [(a, b) for a in range(9) for b in range(a)]),
    "two cliques and a hermit": edges(11, [(a, b) for a in range(10) for b in range(a) if a // 5 == b // 5]),
    "a grid": edges(49, [(a, a + 1) for a in range(48) if a % 7 < 6] + [(a, a + 7) for a in range(42)]),
    "a loop alone": sparse.csr_array(np.array([[2.0]])),
    "zeros that are stored": sparse.csr_array((np.zeros(2), np.array([1, 0]), np.array([0, 1, 2])), shape=(2, 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("damping", DAMPINGS)
def test_shapes(shape, damping):
    adjacency = SHAPES[shape]
    n = adjacency.shape[0]
    restart = np.vstack([np.eye(n)[0], np.ones(n), np.arange(n)[::-1] == 0])
    found = dense(adjacency, restart, damping, 1e-10)
    np.testing.assert_allclose(found, personalised_pagerank(adjacency, restart, damping, 1e-13), atol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(DAMPINGS), st.sampled_from([None, 1, 7]))
def test_a_row_does_not_depend_on_its_batch_mates_to_the_last_bit(seed, damping, top_k):
    adjacency, rng = random_adjacency(seed)
    restart = rng.random((70, adjacency.shape[0])) * (rng.random((70, adjacency.shape[0])) < 0.2)  # over two blocks
    restart[5] = 0.0
    walk = reduce_walk(adjacency, damping)
    whole = walk.rank(sparse.csr_array(restart), 1e-5, top_k)
    mixed = rng.permutation(70)
    permuted = walk.rank(sparse.csr_array(restart[mixed]), 1e-5, top_k)
    for at, row in enumerate(mixed):
        np.testing.assert_array_equal(permuted[at][0], whole[row][0])
        np.testing.assert_array_equal(permuted[at][1], whole[row][1])
    again = reduce_walk(adjacency, damping)
    for row in (0, 5, 63, 64, 69):
        ids, scores = again.rank(sparse.csr_array(restart[row : row + 1]), 1e-5, top_k)[0]
        np.testing.assert_array_equal(ids, whole[row][0])
        np.testing.assert_array_equal(scores, whole[row][1])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 70))
def test_the_best_are_the_first_of_all(seed, top_k):
    adjacency, rng = random_adjacency(seed)
    walk = reduce_walk(adjacency, 0.85)
    restart = sparse.csr_array(rng.random((1, adjacency.shape[0])))
    ids, scores = walk.rank(restart, 1e-5)[0]
    best_ids, best_scores = walk.rank(restart, 1e-5, top_k)[0]
    np.testing.assert_array_equal(best_ids, ids[:top_k])
    np.testing.assert_array_equal(best_scores, scores[:top_k])


def test_leaves_of_one_node_tie_and_stand_by_id():
    leaves = [3, 17, 4, 12, 9, 20]
    adjacency = edges(21, [(0, a) for a in leaves] + [(0, 1), (1, 2), (2, 0), (1, 5), (2, 6), (5, 6)])
    restart = np.eye(21)[[0]]
    ids, scores = reduce_walk(adjacency, 0.85).rank(sparse.csr_array(restart), 1e-8)[0]
    tied = scores == scores[ids.tolist().index(3)]
    assert ids[tied].tolist() == sorted(leaves)
    cut = ids.tolist().index(3) + 2
    assert reduce_walk(adjacency, 0.85).rank(sparse.csr_array(restart), 1e-8, cut)[0][0].tolist() == ids[:cut].tolist()


def test_the_core_has_no_more_edges_than_the_graph_and_is_most_often_far_smaller():
    rng = np.random.default_rng(0)
    towards = (rng.random(3000) ** 3 * np.arange(3000)).astype(int)  # the early ones become hubs
    matrix = sparse.coo_array((np.ones(2999), (np.arange(1, 3000), towards[1:])), shape=(3000, 3000)).tocsr()
    adjacency = sparse.csr_array(matrix + matrix.T)
    assert len(reduce_walk(adjacency, 0.5).scale) <= 30  # a tree: all but what a round would not be worth
    thick = sparse.csr_array(np.triu(rng.random((400, 400)) < 0.04, 1).astype(float))
    thick = sparse.csr_array(thick + thick.T)
    assert reduce_walk(thick, 0.5).core.nnz <= thick.nnz


def test_what_the_restart_cannot_reach_has_exactly_nothing():
    adjacency = edges(4, [(0, 1), (2, 3)])
    assert sorted(reduce_walk(adjacency, 0.99).rank(sparse.csr_array(np.eye(4)[[0]]), 1e-9)[0][0].tolist()) == [0, 1]


def test_no_rows_and_no_nodes():
    assert reduce_walk(edges(2, [(0, 1)]), 0.5).rank(sparse.csr_array((0, 2)), 1e-5) == []
    assert [len(ids) for ids, _ in reduce_walk(sparse.csr_array((0, 0)), 0.5).rank(sparse.csr_array((2, 0)), 1e-5)] == [
        0,
        0,
    ]


@pytest.mark.parametrize("damping", [1.0, 1.5, -0.1, float("nan")])
def test_a_damping_that_is_no_probability_below_one_is_refused(damping):
    with pytest.raises(OperatorFailure, match="damping is a probability below 1"):
        reduce_walk(edges(2, [(0, 1)]), damping)


@pytest.mark.parametrize("tolerance", [0.0, -1e-5, 1e-13, 1.0, float("nan")])
def test_a_tolerance_that_cannot_be_kept_is_refused(tolerance):
    with pytest.raises(OperatorFailure, match="tolerance is a share of the scores"):
        reduce_walk(edges(2, [(0, 1)]), 0.5).rank(sparse.csr_array(np.eye(2)), tolerance)


def test_weights_that_are_not_numbers_are_refused():
    clique = SHAPES["a clique"].copy()
    clique.data[:] = np.nan
    with pytest.raises(OperatorFailure, match="finite"):
        reduce_walk(clique, 0.5).rank(sparse.csr_array(np.eye(9)), 1e-5)
