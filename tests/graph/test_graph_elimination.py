"""Elimination of low-degree nodes against a dense solution of the whole system."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.graph.elimination import eliminate


def solved(links, diagonal, right):
    """What is left by elimination of the dense matrix, the rounds by what each says of itself."""
    left, rounds = eliminate(sparse.csr_array(links), diagonal)
    right = right.copy()
    for taken in rounds:
        right[taken.stay] += taken.combine.T @ right[taken.nodes]
    p = np.full(len(right), np.nan)
    p[left.nodes] = np.linalg.solve(np.diag(left.diagonal) - left.links.toarray(), right[left.nodes])
    for taken in reversed(rounds):
        p[taken.nodes] = taken.combine @ p[taken.stay] + right[taken.nodes] / taken.diagonal
    return p


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 2.0, 4.0, 9.0]))
def test_equals_the_dense_solution_and_never_adds_edges(seed, mean):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    links = np.triu(rng.random((n, n)) * (rng.random((n, n)) < mean / n))  # loops too
    links = links + links.T
    diagonal = links.sum(axis=1) + 0.1 + rng.random(n)
    right = rng.random(n)
    np.testing.assert_allclose(
        solved(links, diagonal, right), np.linalg.solve(np.diag(diagonal) - links, right), rtol=1e-9
    )
    left, rounds = eliminate(sparse.csr_array(links), diagonal)
    assert left.links.nnz <= np.count_nonzero(links - np.diag(np.diag(links)))
    nodes = np.concatenate([left.nodes, *(taken.nodes for taken in rounds)])
    assert sorted(nodes.tolist()) == list(range(n))


def test_a_star_by_hand():
    # 0 - {1, 2, 3, 4}: the leaves go in one round, then the middle, which is alone
    links = np.zeros((5, 5))
    links[0, 1:] = links[1:, 0] = 1.0
    left, rounds = eliminate(sparse.csr_array(links), np.array([5.0, 2.0, 2.0, 2.0, 2.0]))
    assert [taken.nodes.tolist() for taken in rounds] == [[1, 2, 3, 4], [0]]
    assert rounds[1].diagonal.tolist() == [5.0 - 4 * 0.5]
    assert len(left.nodes) == 0
