"""Clustering of a layer: mixtures by BIC, two steps, k-means, and the bound on a cluster's tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from graphrag_bench.graph.tree.clustering import GlobalThenLocal, KMeansOf, pack, partition
from graphrag_bench.graph.tree.mixture import Mixture
from graphrag_bench.graph.tree.projection import project


@pytest.fixture(autouse=True)
def one_thread():
    """As `partition` has it: on tiny problems threads only wait for each other."""
    with threadpool_limits(1):
        yield


def blobs(counts, dim=2, spread=0.05, seed=0):
    """Points around the corners of a square, cluster after cluster."""
    rng = np.random.default_rng(seed)
    corners = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], float)
    rows = [rng.normal(0, spread, (count, dim)) for count in counts]
    for corner, row in zip(corners, rows, strict=False):
        row[:, :2] += corner
    return np.concatenate(rows)


def as_lists(clusters):
    return sorted(sorted(map(int, cluster)) for cluster in clusters)


def test_three_separated_clusters_are_found():
    found = Mixture(seed=1, max_components=8).clusters(blobs([30, 25, 35]))
    assert as_lists(found) == [list(range(30)), list(range(30, 55)), list(range(55, 90))]


@pytest.mark.parametrize(("n", "most", "covariance"), [(40, 49, "full"), (12, 49, "full"), (30, 5, "diag")])
def test_the_number_of_components_is_that_of_least_bic(n, most, covariance):
    points = np.random.default_rng(n).normal(size=(n, 3))
    fits = {
        count: GaussianMixture(count, random_state=7, covariance_type=covariance).fit(points)
        for count in range(1, min(most, n - 1) + 1)
    }
    best = min(fits, key=lambda count: (fits[count].bic(points), count))
    posterior = fits[best].predict_proba(points)
    expected = [np.flatnonzero(column > 0.1).tolist() for column in posterior.T]
    found = Mixture(max_components=most, seed=7, covariance=covariance).clusters(points)
    assert as_lists(found) == sorted(cluster for cluster in expected if cluster)


def test_between_two_clusters_a_point_belongs_to_both_or_to_the_likelier():
    left = blobs([200], spread=2.0)
    points = np.concatenate([left, [10, 0] + left * [-1, 1], [[5.0, 0.0]]])  # mirror images, and a point on the mirror
    soft = Mixture(max_components=2, seed=3).clusters(points)
    hard = Mixture(max_components=2, seed=3, membership="hard").clusters(points)
    assert [400 in cluster for cluster in soft] == [True, True]
    assert sum(400 in cluster for cluster in hard) == 1
    assert sum(map(len, hard)) == 401


def test_no_point_is_lost_when_every_posterior_is_low():
    points = np.random.default_rng(0).normal(size=(30, 2))
    found = Mixture(threshold=0.999, max_components=4, seed=0, covariance="diag").clusters(points)
    assert set(np.concatenate(found).tolist()) == set(range(30))


def test_many_points_choose_their_number_on_a_sample_and_are_all_fitted():
    points = blobs([80, 60, 70])
    assert as_lists(Mixture(bic_points=60, seed=2, max_components=6).clusters(points)) == as_lists(
        Mixture(seed=2, max_components=6).clusters(points)
    )


def test_equal_points_are_one_cluster():
    assert as_lists(Mixture().clusters(np.ones((9, 4)))) == [list(range(9))]


def test_principal_components_are_those_of_scikit_learn_and_small_vectors_stay():
    vectors = np.random.default_rng(1).normal(size=(30, 20)).astype(np.float32)
    found = project(vectors, "pca", dimensions=4, neighbours=3, seed=0)
    np.testing.assert_allclose(found, PCA(4, svd_solver="full").fit_transform(vectors.astype(float)))
    assert project(vectors, "none", dimensions=4, neighbours=3, seed=0).shape == (30, 20)
    assert project(vectors[:5], "pca", dimensions=10, neighbours=3, seed=0).shape == (5, 3)
    small = project(vectors[:, :2], "umap", dimensions=10, neighbours=3, seed=0)
    np.testing.assert_array_equal(small, vectors[:, :2].astype(float))


def test_umap_is_seeded():
    vectors = np.random.default_rng(1).normal(size=(40, 16)).astype(np.float32)
    one, two = (project(vectors, "umap", dimensions=3, neighbours=6, seed=5) for _ in range(2))
    assert one.tobytes() == two.tobytes()
    assert one.shape == (40, 3)
    # so few nodes that neighbours and eigenvectors are as scarce as they get
    assert project(vectors[:12], "umap", dimensions=10, neighbours=3, seed=5).shape == (12, 10)
    alike = np.repeat(vectors[:1], 14, axis=0)
    assert np.isfinite(project(alike, "umap", dimensions=10, neighbours=3, seed=5)).all()


def test_a_cluster_of_dimensions_plus_one_is_not_divided_again():
    points = blobs([3, 3, 20])
    step = GlobalThenLocal(Mixture(seed=0, max_components=3), "none", dimensions=2)
    assert as_lists(step(points[:3])) == [[0, 1, 2]]
    found = as_lists(step(points))
    assert found[:2] == [[0, 1, 2], [3, 4, 5]]
    assert sorted(node for cluster in found[2:] for node in cluster) == list(range(6, 26))


def test_the_second_step_divides_what_the_first_left_together():
    points = np.concatenate([blobs([15, 15], spread=0.01) * 0.1, blobs([15, 15], spread=0.01) * 0.1 + [100, 0]])
    step = GlobalThenLocal(Mixture(seed=0, max_components=2), "none", dimensions=2)
    assert len(step.mixture.clusters(points)) == 2
    assert as_lists(step(points)) == [list(range(at, at + 15)) for at in (0, 15, 30, 45)]


@pytest.mark.parametrize("n", [4, 10, 11, 57])
def test_k_means_makes_one_cluster_for_ten_nodes(n):
    vectors = np.random.default_rng(n).normal(size=(n, 5))
    found = KMeansOf(10, 3)(vectors)
    assert len(found) == -(-n // 10)
    assert sorted(np.concatenate(found).tolist()) == list(range(n))
    if n > 10:
        labels = KMeans(len(found), n_init=1, random_state=3).fit_predict(vectors)
        assert as_lists(found) == sorted(np.flatnonzero(labels == label).tolist() for label in set(labels))


def test_k_means_of_equal_vectors_ends():
    assert as_lists(KMeansOf()(np.ones((30, 3)))) == [list(range(30))]


def whole(vectors):
    return [np.arange(len(vectors))]


def halves(vectors):
    middle = len(vectors) // 2
    return [np.arange(middle), np.arange(middle, len(vectors))] if middle else [np.arange(len(vectors))]


def all_but_one(vectors):
    n = len(vectors)
    return [np.delete(np.arange(n), left_out) for left_out in range(n)]


def test_equal_clusters_are_one():
    def twice(vectors):
        return [np.arange(3), np.arange(1, 3), np.arange(3), np.array([3])]

    assert partition(twice, np.eye(4), [1] * 4, None, 5) == [(0, 1, 2), (1, 2), (3,)]


def test_a_cluster_of_long_texts_is_clustered_again():
    vectors = np.eye(8)
    assert partition(halves, vectors, [10] * 8, 40, 5) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert partition(halves, vectors, [10] * 8, 39, 5) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    # one node may be longer than the bound
    assert partition(halves, vectors[:2], [99, 1], 39, 5) == [(0,), (1,)]
    # at most max_depth times: then packed
    assert partition(halves, vectors, [10] * 8, 30, 0) == [(0, 1, 2), (3,), (4, 5, 6), (7,)]


def test_what_clustering_does_not_divide_is_packed_by_nearness():
    at = np.radians([0, 90, 5, 95, 10, 85])
    vectors = np.stack([np.cos(at), np.sin(at)], axis=1)
    sizes = [10] * 6
    assert partition(whole, vectors, sizes, 30, 5) == [(0, 2, 4), (1, 3, 5)]
    assert partition(whole, vectors, sizes, 20, 5) == [(0, 2), (1, 3), (4, 5)]
    assert partition(whole, vectors, [99, 10, 10, 10, 10, 10], 20, 5) == [(0,), (1, 3), (2, 4), (5,)]


def test_equal_texts_are_packed_in_order_and_end():
    vectors = np.tile([1.0, 0.0], (25, 1))
    found = partition(GlobalThenLocal(Mixture(), "none", 10), vectors, [10] * 25, 100, 5)
    assert found == [tuple(range(0, 10)), tuple(range(10, 20)), tuple(range(20, 25))]


def test_overlapping_clusters_do_not_make_the_recursion_explode():
    found = partition(all_but_one, np.eye(9), [10] * 9, 30, 2)
    assert all(len(cluster) <= 3 for cluster in found)
    assert set(sum(found, ())) == set(range(9))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 100), st.integers(0, 10**6))
def test_packing_keeps_every_node_once_and_obeys_the_bound(sizes, bound, seed):
    vectors = np.random.default_rng(seed).normal(size=(len(sizes), 3))
    packs = pack(np.arange(len(sizes)), vectors, np.array(sizes), bound)
    assert sorted(sum(packs, ())) == list(range(len(sizes)))
    assert all(len(group) == 1 or sum(sizes[node] for node in group) <= bound for group in packs)
    assert [min(group) for group in packs] == sorted(min(group) for group in packs)
