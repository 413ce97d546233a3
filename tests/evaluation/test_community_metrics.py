"""Community quality: by hand on small divisions, and against scikit-learn and networkx on random ones."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics

from graphrag_bench.community.simple import Edges
from graphrag_bench.evaluation.catalogue import community_metric
from graphrag_bench.evaluation.community_metrics.dispersion import chi, davies_bouldin, similarity
from graphrag_bench.evaluation.community_metrics.silhouette import silhouette
from graphrag_bench.evaluation.community_metrics.structure import clustered, modularity
from graphrag_bench.evaluation.divisions import Division
from graphrag_bench.registry import REGISTRY

NONE: Edges = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
TWO_PAIRS = [[0, 0], [0, 2], [10, 0], [10, 2]]


def division(vectors: object, labels: object, edges: Edges = NONE) -> Division:
    return Division(np.asarray(vectors, dtype=np.float32), np.asarray(labels, dtype=np.int64), edges)


def drawn(seed: int, nodes: int = 120, groups: int = 9, without: int = 10) -> Division:
    """Random vectors around centres and random edges; some nodes are in no community."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(groups), rng.integers(0, groups, nodes - groups - without), np.full(without, -1)]
    rng.shuffle(labels)
    vectors = rng.normal(size=(nodes, 6)) + 2 * rng.normal(size=(groups + 1, 6))[labels]
    graph = nx.gnm_random_graph(nodes, 4 * nodes, seed=seed)
    pairs = np.array(sorted((min(e), max(e)) for e in graph.edges), dtype=np.int64)
    return division(vectors, labels, (pairs[:, 0], pairs[:, 1], rng.uniform(0.1, 3, len(pairs))))


def clustered_only(one: Division) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    inside = one.labels >= 0
    return one.vectors[inside].astype(np.float64), one.labels[inside]


# -- by hand --


def test_chi_of_two_pairs():
    """Means (0, 1) and (10, 1) around (5, 1): B = 4 · 25 = 100 over 1, W = 4 · 1 over 2, so 50."""
    assert chi(division(TWO_PAIRS, [0, 0, 1, 1])) == pytest.approx(50)
    assert chi(division([*TWO_PAIRS, [99, 99]], [0, 0, 1, 1, -1])) == pytest.approx(50)  # in no community: left out


def test_similarity_counts_a_node_in_no_community_as_nothing():
    """(1, 0) and (0, 1) have the cosine 1/√2 with their mean; the lone node is one of three all the same."""
    assert similarity(division([[1, 0], [0, 1], [1, 1]], [0, 0, -1])) == pytest.approx(2 * 0.5**0.5 / 3)
    assert similarity(division([[1, 0], [0, 1], [0, 0]], [0, 1, 2])) == pytest.approx(2 / 3)  # a vector of zeros


def test_davies_bouldin_of_two_pairs():
    """Each spread is 1 and the means are 10 apart: (1 + 1) / 10."""
    assert davies_bouldin(division(TWO_PAIRS, [0, 0, 1, 1])) == pytest.approx(0.2)


def test_silhouette_of_two_pairs():
    """Each node is 2 from its own and (10 + √104) / 2 from the others."""
    assert silhouette(division(TWO_PAIRS, [0, 0, 1, 1])) == pytest.approx(1 - 2 / ((10 + 104**0.5) / 2))


def test_modularity_of_two_edges_in_two_communities_is_a_half():
    edges = (np.array([0, 2]), np.array([1, 3]), np.array([2.0, 2.0]))
    assert modularity(division(TWO_PAIRS, [0, 0, 1, 1], edges)) == pytest.approx(0.5)
    assert modularity(division(TWO_PAIRS, [0, 0, 0, 0], edges)) == pytest.approx(0)


def test_what_is_told_beside():
    one = division(np.eye(6), [0, 0, 0, 1, 2, -1])
    told = {
        name: community_metric(name).call(one)
        for name in ("count", "clustered", "median_size", "mean_size", "largest", "singletons", "share_in_largest")
    }
    assert told == {
        "count": 3, "clustered": pytest.approx(5 / 6), "median_size": 1, "mean_size": pytest.approx(5 / 3),
        "largest": 3, "singletons": 2, "share_in_largest": pytest.approx(0.6),
    }  # fmt: skip


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [-1, -1, -1, -1], [0, -1, -1, -1]])
def test_what_is_not_defined_has_no_value(labels):
    """One community, only communities of one node, none at all: scikit-learn refuses them, and so nothing is said."""
    one = division(TWO_PAIRS, labels)
    assert [chi(one), davies_bouldin(one), silhouette(one), modularity(one)] == [None] * 4
    assert clustered(one) == np.mean(np.array(labels) >= 0)
    for component in REGISTRY.all("community_metric"):
        component.call(one)  # and nothing breaks


def test_no_node_at_all():
    for component in REGISTRY.all("community_metric"):
        assert component.call(division(np.empty((0, 3)), [])) in (None, 0)


def test_nodes_that_are_all_alike():
    """What scikit-learn says of them, too."""
    vectors, labels = np.ones((6, 2)), [0, 0, 0, 1, 1, 1]
    one = division(vectors, labels)
    assert chi(one) == metrics.calinski_harabasz_score(vectors, labels) == 1
    assert davies_bouldin(one) == metrics.davies_bouldin_score(vectors, labels) == 0
    assert silhouette(one) == metrics.silhouette_score(vectors, labels) == 0


# -- against other implementations --


@pytest.mark.parametrize("seed", range(6))
def test_as_scikit_learn_and_networkx_have_it(seed):
    one = drawn(seed, groups=(2, 9, 40)[seed % 3])
    vectors, labels = clustered_only(one)
    assert chi(one) == pytest.approx(metrics.calinski_harabasz_score(vectors, labels))
    assert davies_bouldin(one) == pytest.approx(metrics.davies_bouldin_score(vectors, labels))
    assert silhouette(one) == pytest.approx(metrics.silhouette_score(vectors, labels))
    graph = nx.Graph()
    graph.add_nodes_from(range(one.n_nodes))
    graph.add_weighted_edges_from(zip(*(column.tolist() for column in one.edges), strict=True))
    parts = [{node} for node in np.flatnonzero(one.labels < 0).tolist()]
    parts += [set(np.flatnonzero(one.labels == label).tolist()) for label in range(len(one.sizes))]
    assert modularity(one) == pytest.approx(nx.community.modularity(graph, parts))


def test_in_small_blocks_the_same(monkeypatch):
    """Blocks that cut communities in two, or hold several, change nothing."""
    from graphrag_bench.evaluation import divisions
    from graphrag_bench.evaluation.community_metrics import dispersion
    from graphrag_bench.evaluation.community_metrics import silhouette as module

    whole = drawn(3, nodes=700, groups=40)
    before = [metric(whole) for metric in (chi, similarity, davies_bouldin, silhouette)]
    monkeypatch.setattr(divisions, "_BLOCK", 7 * 6)
    monkeypatch.setattr(dispersion, "_PAIRS", 100)
    monkeypatch.setattr(module, "_PAIRS", 256 * 11)
    assert [metric(drawn(3, nodes=700, groups=40)) for metric in (chi, similarity, davies_bouldin, silhouette)] == (
        pytest.approx(before, rel=1e-9)
    )


def test_samples_are_near_the_whole_and_hang_on_the_seed():
    one = drawn(1, nodes=2000, groups=150)
    for metric, near in ((silhouette, 0.03), (davies_bouldin, 0.2)):
        whole, part = metric(one, sample=10_000), metric(one, sample=100, seed=1)
        assert part == pytest.approx(whole, abs=near) and part != whole
        assert part == metric(one, sample=100, seed=1) != metric(one, sample=100, seed=2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_are_within_their_bounds(data):
    nodes = data.draw(st.integers(2, 12))
    labels = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=nodes, max_size=nodes)))
    labels[labels >= 0] = np.unique(labels[labels >= 0], return_inverse=True)[1]
    seed = data.draw(st.integers(0, 99))
    vectors = np.random.default_rng(seed).normal(size=(nodes, 3))
    one = division(vectors, labels, (np.array([0]), np.array([1]), np.array([1.0])))
    assert -1 <= (similarity(one) or 0) <= 1 + 1e-9
    assert -1 <= (silhouette(one) or 0) <= 1
    assert -0.5 <= (modularity(one) or 0) <= 1
    for value in (chi(one), davies_bouldin(one)):
        assert value is None or value >= 0
