"""Fuse: reciprocal ranks and normalised scores, by hand and against a plain computation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Chunks
from operators.chunk.fuse import fuse

ROWS = st.lists(
    st.dictionaries(st.integers(0, 9), st.sampled_from([-1.0, 0.25, 0.5, 2.0]), max_size=8), min_size=3, max_size=3
)


def chunks(*rows):
    return Chunks.of_rows([(list(row), list(row.values())) for row in rows])


def test_reciprocal_ranks_by_hand(small):
    # places: 7, 5, 3 and 5, 8; of the fused ones 5 stands second and first
    one, two = chunks({7: 0.9, 5: 0.5, 3: 0.1}), chunks({5: 12.0, 8: 3.0})
    found = small.pairs(fuse(one, two).row(0))
    assert found == [(5, 1 / 62 + 1 / 61), (7, 1 / 61), (8, 1 / 62), (3, 1 / 63)]
    assert small.pairs(fuse(one, two, k=0).row(0)) == [(5, 1.5), (7, 1.0), (8, 0.5), (3, 1 / 3)]
    assert [pair[0] for pair in small.pairs(fuse(one, two, top_k=2).row(0))] == [5, 7]


def test_equals_share_a_place_so_that_ids_decide_nothing(small):
    found = small.pairs(fuse(chunks({1: 0.5, 2: 0.5, 3: 0.2}), chunks({}), k=1).row(0))
    assert found == [(1, 0.5), (2, 0.5), (3, 0.25)]


def test_normalised_scores_by_hand(small):
    found = fuse(chunks({0: 4.0, 1: 2.0}, {0: 0.0}), chunks({1: 0.1, 2: -0.1}, {}), rule="sum_normalised")
    assert small.pairs(found.row(0)) == [(1, 1.5), (0, 1.0), (2, -1.0)]
    assert small.pairs(found.row(1)) == [(0, 0.0)]


def naive(row, rule, k):
    if rule == "rrf":
        return {one: 1 / (k + 1 + sum(other > score for other in row.values())) for one, score in row.items()}
    largest = max(map(abs, row.values()), default=0) or 1
    return {one: score / largest for one, score in row.items()}


@given(one=ROWS, two=ROWS, rule=st.sampled_from(["rrf", "sum_normalised"]), k=st.integers(0, 99))
def test_against_a_plain_computation_and_in_either_order(small, one, two, rule, k):
    found = fuse(chunks(*one), chunks(*two), rule=rule, k=k)
    swapped = fuse(chunks(*two), chunks(*one), rule=rule, k=k)
    for number in range(3):
        parts = [naive(row[number], rule, k) for row in (one, two)]
        wanted = {key: sum(part.get(key, 0.0) for part in parts) for key in {**parts[0], **parts[1]}}
        assert small.pairs(found.row(number)) == [(key, pytest.approx(score)) for key, score in small.ranked(wanted)]
        assert small.pairs(swapped.row(number)) == small.pairs(found.row(number))
