"""Rankings against a naive implementation: lists of (id, score), sorted with Python's own sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Ranking, Relationships

N = 12  # ids run from 0; few ids and few scores, so that duplicates and ties are common
SCORES = st.sampled_from([-1.5, -0.25, 0.5, 1.0, 2.0, 2.5])
ROW = st.lists(st.tuples(st.integers(0, N - 1), SCORES), max_size=15)
ROWS = st.lists(ROW, max_size=5)
DENSE = st.lists(st.lists(st.one_of(st.just(0.0), SCORES), min_size=N, max_size=N), max_size=5)


def naive(row):
    best = {}
    for identity, score in row:
        best[identity] = max(score, best.get(identity, score))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))


def pairs(row):
    return list(zip(row.ids.tolist(), row.scores.tolist(), strict=True))


def ranking(rows, failed=None):
    split = [([i for i, _ in row], [s for _, s in row]) for row in rows]
    return Nodes.of_rows(split, failed or {})


@given(ROWS)
def test_of_rows_sorts_breaks_ties_by_id_and_keeps_the_best_of_duplicates(rows):
    made = ranking(rows)
    assert len(made) == made.size == len(rows)
    assert [pairs(row) for row in made] == [naive(row) for row in rows]
    assert made.indptr.tolist() == np.cumsum([0, *(len(naive(row)) for row in rows)]).tolist()
    assert len(made.ids) == len(made.scores) == made.indptr[-1]


@given(ROWS, st.randoms())
def test_of_rows_does_not_depend_on_the_order_given(rows, random):
    shuffled = [random.sample(row, len(row)) for row in rows]
    assert [pairs(row) for row in ranking(shuffled)] == [pairs(row) for row in ranking(rows)]


@given(DENSE, st.integers(1, N + 5))
def test_of_dense_leaves_zeros_out_and_cuts_ties_at_the_smaller_id(matrix, k):
    dense = np.array(matrix).reshape(-1, N)
    expected = [naive([(i, s) for i, s in enumerate(row) if s]) for row in matrix]
    assert [pairs(row) for row in Nodes.of_dense(dense)] == expected
    assert [pairs(row) for row in Nodes.of_dense(dense, k)] == [row[:k] for row in expected]


def test_ties_at_the_cut_by_hand():
    row = np.array([[1.0, 3.0, 1.0, 0.0, 1.0, 3.0]])
    assert Nodes.of_dense(row, 4).row(0).ids.tolist() == [1, 5, 0, 2]
    assert Nodes.of_dense(row, 1).row(0).ids.tolist() == [1]


@given(ROWS, st.integers(1, N + 5))
def test_top_is_the_head_of_each_row_however_the_ranking_was_made(rows, k):
    made = ranking(rows)
    expected = [naive(row)[:k] for row in rows]
    assert [pairs(row) for row in made.top(k)] == expected
    assert [pairs(row) for row in Nodes.of_dense(made.dense(N)).top(k)] == expected
    sorted_already = Nodes.of_dense(made.dense(N))
    assert sorted_already.ids is not None  # now the dense ranking holds its order as well
    assert [pairs(row) for row in sorted_already.top(k)] == expected


@given(ROWS)
def test_dense_and_rows_are_two_forms_of_the_same(rows):
    made = ranking(rows)
    dense = made.dense(N)
    assert dense.shape == (len(rows), N)
    expected = np.zeros((len(rows), N))
    for number, row in enumerate(rows):
        for identity, score in naive(row):
            expected[number, identity] = score
    np.testing.assert_array_equal(dense, expected)
    assert [pairs(row) for row in Nodes.of_dense(dense)] == [pairs(row) for row in made]


@given(
    st.integers(0, 4).flatmap(
        lambda size: st.lists(st.lists(ROW, min_size=size, max_size=size), min_size=1, max_size=4)
    ),
    st.sampled_from(["max", "sum"]),
)
def test_join_is_the_best_or_the_sum_over_values(several, rule):
    joined = Nodes.join([ranking(rows) for rows in several], rule)
    for number in range(len(several[0])):
        total = {}
        for rows in several:
            for identity, score in naive(rows[number]):
                if identity not in total:
                    total[identity] = score
                else:
                    total[identity] = max(total[identity], score) if rule == "max" else total[identity] + score
        assert pairs(joined.row(number)) == naive(list(total.items()))


@given(ROWS)
def test_a_batch_is_its_questions_one_by_one(rows):
    whole = ranking(rows)
    for number, row in enumerate(rows):
        alone = ranking([row])
        assert pairs(alone.row(0)) == pairs(whole.row(number))
        assert pairs(alone.top(3).row(0)) == pairs(whole.top(3).row(number))
        joined = Nodes.join([whole, whole], "sum")
        assert pairs(Nodes.join([alone, alone], "sum").row(0)) == pairs(joined.row(number))


def test_failures_are_carried_through_top_join_and_every_constructor():
    failed = {1: "empty: no reply"}
    made = ranking([[(1, 1.0)], [], [(2, 1.0)]], failed)
    assert made.failed == made.top(1).failed == failed
    assert Nodes.of_dense(np.ones((2, 3)), 2, failed).failed == failed
    assert Nodes.of_dense(np.ones((2, 3)), None, failed).failed == failed
    assert Nodes.empty(2, failed).failed == failed
    other = ranking([[(1, 1.0)], [(3, 1.0)], []], {2: "timeout: 60 s"})
    assert Nodes.join([made, other]).failed == {1: "empty: no reply", 2: "timeout: 60 s"}
    assert ranking([[]]).failed == {}


@pytest.mark.parametrize("kind", [Nodes, Relationships, Chunks, Communities])
def test_every_kind_makes_its_own_kind(kind):
    made = kind.of_rows([([1, 0], [1.0, 1.0])])
    assert type(made) is type(made.top(1)) is type(kind.join([made])) is type(kind.empty(2)) is kind
    assert kind.empty(3).size == 3
    assert [row.ids.tolist() for row in kind.empty(2)] == [[], []]
    assert made.ids.dtype == np.int64
    assert made.scores.dtype == np.float64


def test_empty_batches_have_a_size_of_nought():
    for made in (Nodes.of_rows([]), Nodes.of_dense(np.empty((0, 4))), Nodes.empty(0)):
        assert made.size == 0
        assert list(made) == []
        assert made.dense(4).shape == (0, 4)


def test_a_ranking_of_nothing_is_refused():
    with pytest.raises(ValueError, match="rows or a dense"):
        Ranking()
    with pytest.raises(ValueError, match="not made from a dense"):
        ranking([[(1, 1.0)]]).dense_or_fail()


def test_what_is_read_of_questions():
    questions = Questions(("a", "b"), ("Who?", "Where?"), (("Ada", "Ulm"), ("Brask",)), failed={1: "timeout: 60 s"})
    assert questions.read("question") == [("Who?",), ()]
    assert questions.read("entities") == [("Ada", "Ulm"), ()]
    with pytest.raises(ValueError, match="entities"):
        Questions(("a",), ("Who?",)).read("entities")
