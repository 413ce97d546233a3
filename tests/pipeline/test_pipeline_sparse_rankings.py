"""Rankings as sparse matrices, and the rows that operators build, against the dense form and plain sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.pipeline.rows import Firsts, best, by_place, merge, stack, whole
from graphrag_bench.pipeline.values import Nodes, Row

N = 9
SCORES = st.sampled_from([-1.5, 0.0, 0.5, 1.0, 2.0])
ROWS = st.lists(st.lists(st.tuples(st.integers(0, N - 1), SCORES), max_size=12), max_size=5)
ENTRIES = st.lists(st.tuples(st.integers(0, N - 1), SCORES), max_size=15)


def pairs(row):
    return list(zip(row.ids.tolist(), row.scores.tolist(), strict=True))


def ranking(rows):
    return Nodes.of_rows([([i for i, _ in row], [s for _, s in row]) for row in rows])


@given(ROWS)
def test_csr_is_the_dense_form_and_keeps_zeros_that_were_given(rows):
    made = ranking(rows)
    matrix = made.csr(N)
    assert matrix.shape == (len(rows), N)
    np.testing.assert_array_equal(matrix.toarray(), made.dense(N))
    assert matrix.nnz == len(made.ids)
    assert matrix.has_sorted_indices
    assert [pairs(row) for row in made] == [pairs(row) for row in ranking(rows)]  # it was not disturbed
    np.testing.assert_array_equal(Nodes.of_dense(made.dense(N)).csr(N).toarray(), made.dense(N))


@given(ROWS, st.sampled_from([None, 1, 2, 50]))
def test_of_csr_is_of_dense(rows, k):
    matrix = ranking(rows).csr(N)
    wanted = Nodes.of_dense(matrix.toarray().reshape(-1, N), k)
    assert [pairs(row) for row in Nodes.of_csr(matrix, k)] == [pairs(row) for row in wanted]


def test_of_csr_of_nothing_keeps_failures():
    made = Nodes.of_csr(sparse.csr_array((2, 3)), failed={1: "no"})
    assert [pairs(row) for row in made] == [[], []]
    assert made.failed == {1: "no"}
    assert len(Nodes.of_csr(sparse.csr_array((0, 3)))) == 0


@given(ENTRIES, st.sampled_from([None, 1, 3, 50]))
def test_merge_and_best_against_dictionaries(entries, k):
    ids, scores = np.array([i for i, _ in entries], int), np.array([s for _, s in entries], float)
    firsts = Firsts(N)
    first, total = {}, {}
    for identity, score in entries:
        first.setdefault(identity, score)
        total[identity] = total.get(identity, 0.0) + score
    for rule, wanted in (("first", first), ("sum", total)):
        found = merge(ids, firsts, scores, rule)
        assert dict(zip(*(column.tolist() for column in found), strict=True)) == wanted
        assert pairs(best(*found, k)) == sorted(wanted.items(), key=lambda item: (-item[1], item[0]))[:k]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-np.inf, 0.0, 1.0])), max_size=N), st.sampled_from([None, 2])
)
def test_places_are_shared_by_equals(keys, k):
    columns = [np.array([key[at] for key in keys], float) for at in (0, 1)]
    found = by_place(np.arange(len(keys)), columns, k)
    ordered = sorted(range(len(keys)), key=lambda n: (keys[n], n))
    assert pairs(found) == [(n, 1 / (1 + sum(other < keys[n] for other in keys))) for n in ordered][:k]


def test_stack_and_whole():
    made = stack(Nodes, [Row(np.array([3, 1]), np.array([2.0, 1.0])), Row(np.array([], int), np.array([]))])
    assert [pairs(row) for row in made] == [[(3, 2.0), (1, 1.0)], []]
    assert len(stack(Nodes, [])) == 0
    assert whole(made) is None
    dense = np.ones((1, 2))
    assert whole(Nodes.of_dense(dense)) is dense
