"""Nearest neighbours of all rows of a matrix: exactly as scikit-learn has them, and nearly so by cells and engines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from graphrag_bench.index.cells import best_columns, by_cells
from graphrag_bench.index.neighbours import nearest_neighbours, pair_cosines


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def clustered(n, width=24, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(n // 20, 1), width))
    return unit(centres[rng.integers(len(centres), size=n)] + 0.5 * rng.standard_normal((n, width)))


def test_the_nearest_of_each_never_itself_ties_by_id():
    found = nearest_neighbours(unit([[1, 0], [1, 0], [0, 1], [1, 1], [1, 0]]), 3)
    assert found.search == "exact"
    assert found.ids.tolist() == [[1, 4, 3], [0, 4, 3], [3, 0, 1], [0, 1, 2], [0, 1, 3]]
    assert found.cosines[3] == pytest.approx([0.707107] * 3) and found.cosines[0, 0] == 1


def test_a_row_of_zeros_has_none_and_is_nobodys():
    found = nearest_neighbours(unit([[0, 0], [1, 0], [0, 0], [0, 1]]), 2)
    assert found.ids.tolist() == [[-1, -1], [3, -1], [-1, -1], [1, -1]]
    assert found.cosines.tolist() == [[0.0, 0.0]] * 4
    assert (nearest_neighbours(np.zeros((3, 2), np.float32), 1).ids == -1).all()


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_compare(n):
    found = nearest_neighbours(np.ones((n, 4), np.float32), 2)
    assert found.ids.shape == (n, 2) and (found.ids == -1).all()


def test_only_some_rows():
    vectors = clustered(60)
    rows = np.array([7, 3, 59])
    whole, part = nearest_neighbours(vectors, 4), nearest_neighbours(vectors, 4, rows=rows)
    assert np.array_equal(part.ids, whole.ids[rows]) and np.array_equal(part.cosines, whole.cosines[rows])
    vectors[3] = 0
    assert nearest_neighbours(vectors, 4, rows=rows).ids[1].tolist() == [-1] * 4


def test_exact_is_what_scikit_learn_finds():
    vectors = clustered(400)
    found = nearest_neighbours(vectors, 6, "exact")
    distances, ids = NearestNeighbors(n_neighbors=7, metric="cosine").fit(vectors).kneighbors(vectors)
    assert np.array_equal(found.ids, ids[:, 1:])
    assert found.cosines == pytest.approx(1 - distances[:, 1:], abs=2e-6)


@pytest.mark.parametrize("search", ["cells", "faiss", "hnswlib"])
def test_other_searches_find_nearly_all(search):
    pytest.importorskip({"cells": "numpy"}.get(search, search))
    vectors = clustered(1500)
    exact = nearest_neighbours(vectors, 5, "exact")
    found = nearest_neighbours(vectors, 5, search, seed=1)
    assert found.search == search
    shared = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(found.ids, exact.ids, strict=True)])
    assert shared > 0.97
    assert (found.ids != np.arange(1500)[:, None]).all()
    again = nearest_neighbours(vectors, 5, search, seed=1)
    assert found.ids.tobytes() == again.ids.tobytes() and found.cosines.tobytes() == again.cosines.tobytes()


def test_cells_that_are_all_looked_through_are_exact():
    vectors = clustered(300)
    exact = nearest_neighbours(vectors, 9, "exact")
    for k in (3, 9):  # one pass each, or a partition
        pairs = list(by_cells(vectors, np.arange(300), k, seed=0, probes=300))
        place, near = (np.concatenate(part) for part in zip(*pairs, strict=True))
        for row in range(300):
            assert set(near[place == row].tolist()) == set(exact.ids[row, :k].tolist())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5), st.integers(1, 12))
def test_best_columns_are_the_greatest_and_leave_the_scores(rows, width, seed, k):
    scores = np.random.default_rng(seed).integers(0, 4, (rows, width)).astype(np.float32)
    before = scores.copy()
    k = min(k, width)
    columns = best_columns(scores, k)
    assert np.array_equal(scores, before)
    assert all(len(set(row)) == k for row in columns.tolist())
    best = np.sort(np.take_along_axis(scores, columns, axis=1), axis=1)
    assert np.array_equal(best, np.sort(before, axis=1)[:, width - k :])


def test_pair_cosines():
    vectors = unit([[1, 0], [1, 1], [-1, 0]])
    assert pair_cosines(vectors, np.array([0, 0]), np.array([1, 2])).tolist() == [0.707107, -1.0]


def test_equal_vectors_come_by_id():
    vectors = unit(np.repeat(np.eye(3), 4, axis=0))
    for search in ("exact", "cells"):
        assert nearest_neighbours(vectors, 3, search).ids[5].tolist() == [4, 6, 7]
