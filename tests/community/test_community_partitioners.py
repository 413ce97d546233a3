"""Ways to divide a layer: cliques by hand, networkx and scikit-learn on planted graphs, and what holds for all."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from graphrag_bench.community.augmented import symmetric
from graphrag_bench.community.kmeans import kmeans
from graphrag_bench.community.layered import Layer
from graphrag_bench.community.partitioners.leiden import leiden
from graphrag_bench.community.partitioners.node2vec_kmeans import node2vec_kmeans
from graphrag_bench.community.partitioners.scan import scan, structural_similarity
from graphrag_bench.community.partitioners.spectral import small_end, spectral
from graphrag_bench.community.walks import random_walks
from graphrag_bench.errors import UserError


def layer_of(n, edges):
    """A layer of edges (a, b[, weight]); no partitioner reads the vectors."""
    full = {(min(a, b), max(a, b)): (*rest, 1.0)[0] for a, b, *rest in edges if a != b}
    keys = sorted(full)
    left, right = (np.array([key[end] for key in keys], dtype=np.int64) for end in (0, 1))
    return Layer(np.zeros((n, 2), np.float32), (left, right, np.array([full[key] for key in keys], dtype=np.float64)))


def parts(labels):
    """The communities as sorted lists, by their smallest node."""
    return sorted(sorted(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))


def clique(*nodes):
    return list(itertools.combinations(nodes, 2))


def planted(groups=6, size=15, seed=0, inside=0.6, across=0.01):
    rng = np.random.default_rng(seed)
    truth = np.arange(groups * size) % groups
    pairs = itertools.combinations(range(len(truth)), 2)
    edges = [(a, b) for a, b in pairs if rng.random() < (inside if truth[a] == truth[b] else across)]
    return layer_of(len(truth), edges), truth


def node2vec(layer, **kwargs):
    pytest.importorskip("gensim")
    return node2vec_kmeans(layer, **{"dimensions": 16, "walks": 5, "walk_length": 20, "epochs": 5, **kwargs})


ALL = {"leiden": leiden, "spectral": spectral, "scan": scan, "node2vec_kmeans": node2vec}
SEEDED = ("leiden", "spectral", "node2vec_kmeans")
layers = st.integers(0, 14).flatmap(
    lambda n: st.builds(
        lambda edges: layer_of(n, edges),
        st.lists(
            st.tuples(st.integers(0, max(n - 1, 0)), st.integers(0, max(n - 1, 0)), st.sampled_from([0.001, 0.5, 1.0])),
            max_size=30 if n else 0,
        ),
    )
)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=25, deadline=None)
@given(layer=layers)
def test_every_node_has_one_label_and_whoever_is_alone_stays_so(name, layer):
    kwargs = {} if name == "scan" else {"max_size": 3} if name == "leiden" else {"mean_size": 3}
    labels = ALL[name](layer, **kwargs)
    assert labels.shape == (len(layer),) and np.issubdtype(labels.dtype, np.integer)
    again = ALL[name](layer, **kwargs)
    assert labels.tobytes() == again.tobytes()
    joined = np.isin(np.arange(len(layer)), np.concatenate(layer.edges[:2]))
    for node in np.flatnonzero(~joined):
        assert (labels == labels[node]).sum() == 1


@pytest.mark.parametrize("name", ["leiden", "spectral", "scan"])
@settings(max_examples=25, deadline=None)
@given(layer=layers)
def test_no_community_spans_two_components(name, layer):
    labels = ALL[name](layer)
    plain = nx.Graph(zip(layer.edges[0].tolist(), layer.edges[1].tolist(), strict=True))
    for part in parts(labels):
        assert len(part) == 1 or any(set(part) <= component for component in nx.connected_components(plain))


@pytest.mark.parametrize("name", ALL)
def test_two_cliques_with_a_bridge(name):
    layer = layer_of(10, [*clique(*range(5)), *clique(*range(5, 10)), (4, 5)])
    kwargs = {"max_size": 5} if name == "leiden" else {} if name == "scan" else {"mean_size": 5}
    assert parts(ALL[name](layer, **kwargs)) == [list(range(5)), list(range(5, 10))]


@pytest.mark.parametrize("name", ALL)
def test_planted_communities_are_found_whoever_is_called_what(name):
    layer, truth = planted()
    assert adjusted_rand_score(truth, ALL[name](layer)) > (0.9 if name != "scan" else 0.6)
    turned = np.random.default_rng(1).permutation(len(truth))
    back = np.argsort(turned)
    left, right, weight = layer.edges
    other = layer_of(len(truth), zip(back[left].tolist(), back[right].tolist(), weight.tolist(), strict=True))
    found = ALL[name](other)
    if name == "scan":
        assert adjusted_rand_score(ALL[name](layer)[turned], found) == 1
    else:
        assert adjusted_rand_score(truth[turned], found) > 0.9


def test_leiden_goes_by_the_weights_and_divides_what_is_too_large():
    square = [(0, 1, 1.0), (1, 2, 0.01), (2, 3, 1.0), (3, 0, 0.01)]
    assert parts(leiden(layer_of(4, square))) == [[0, 1], [2, 3]]
    layer, _ = planted(groups=3, size=20)
    assert max(map(len, parts(leiden(layer, max_size=60)))) > 15
    labels = leiden(layer)
    assert max(map(len, parts(labels))) <= 15
    coarse = leiden(layer, max_size=60)
    for part in parts(labels):  # a part is within one of those it was divided from
        assert len(np.unique(coarse[part])) == 1
    assert parts(leiden(layer_of(40, [(0, leaf) for leaf in range(1, 40)]))) == [list(range(40))]


def test_the_small_end_tells_two_cliques_apart():
    """Of the Laplacian's eigenvectors the two smallest are flat and of two signs on two cliques; the large end is not."""
    layer = layer_of(8, [*clique(0, 1, 2, 3), *clique(4, 5, 6, 7), (3, 4)])
    weights = symmetric(layer.edges, 8)
    points = small_end(weights, 2, 0)
    laplacian = np.asarray(nx.normalized_laplacian_matrix(nx.from_scipy_sparse_array(weights)).todense())
    values, vectors = np.linalg.eigh(laplacian)
    for column in range(2):
        assert abs(points[:, column] @ vectors[:, column]) == pytest.approx(1)
        assert laplacian @ points[:, column] == pytest.approx(values[column] * points[:, column])
    sign = np.sign(points[:, 1])
    assert len(set(sign[:4])) == 1 and len(set(sign[4:])) == 1 and sign[0] != sign[4]
    assert len(set(np.sign(vectors[:4, -1]))) == 2  # what the large end would have said
    assert parts(spectral(layer, mean_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_lanczos_finds_what_the_dense_solver_does(monkeypatch):
    layer, _ = planted(groups=8, size=12, seed=3)
    weights = symmetric(layer.edges, len(layer))
    dense = small_end(weights, 8, 0)
    monkeypatch.setattr("graphrag_bench.community.partitioners.spectral._DENSE", 10)
    sparse_ = small_end(weights, 8, 0)
    assert np.abs(dense.T @ sparse_) == pytest.approx(np.eye(8), abs=1e-3)
    assert np.abs(scipy.sparse.linalg.norm(weights - weights.T)) == 0


def test_spectral_agrees_with_scikit_learn():
    layer, truth = planted(seed=5)
    theirs = SpectralClustering(6, affinity="precomputed", random_state=0, assign_labels="kmeans")
    labels = theirs.fit_predict(symmetric(layer.edges, len(layer)).toarray())
    assert adjusted_rand_score(labels, spectral(layer)) > 0.95 and adjusted_rand_score(labels, truth) > 0.95


def test_spectral_gives_each_component_its_share():
    ring = [(n, (n + 1) % 30) for n in range(30)]
    labels = spectral(layer_of(40, [*ring, *clique(*range(30, 38))]), mean_size=10)
    found = parts(labels)
    assert list(range(30, 38)) in found and [38] in found and [39] in found
    assert len(found) == 6
    assert all(len(part) >= 5 for part in found if part[0] < 30)


def test_scan_on_the_papers_kind_of_example():
    """Two dense groups of six and seven, a hub between them, and an outlier that hangs on one node."""
    first = [(0, 1), (0, 4), (0, 5), (0, 2), (1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (3, 5), (4, 5), (1, 4), (2, 4)]
    second = [
        (7, 8), (7, 12), (7, 11), (8, 9), (8, 12), (9, 10), (9, 12), (10, 11), (10, 12), (11, 12), (8, 11), (9, 13), (7, 10),
    ]  # fmt: skip
    hub = [(6, 4), (6, 5), (6, 10), (6, 11)]
    layer = layer_of(14, [*first, *second, *hub])
    assert parts(scan(layer, epsilon=0.7, mu=2, unclustered="own")) == [list(range(6)), [6], [*range(7, 13)], [13]]
    near = parts(scan(layer, epsilon=0.7, mu=2))
    assert len(near) == 2 and [*range(7, 14)] in [[node for node in part if node != 6] for part in near]


@settings(max_examples=60, deadline=None)
@given(layers, st.sampled_from([0.3, 0.5, 0.7, 0.9]), st.integers(1, 4))
def test_scan_is_the_papers_definitions(layer, epsilon, mu):
    n = len(layer)
    around = {node: {node} for node in range(n)}
    for a, b in zip(layer.edges[0].tolist(), layer.edges[1].tolist(), strict=True):
        around[a].add(b)
        around[b].add(a)

    def sigma(a, b):
        return round(len(around[a] & around[b]) / np.sqrt(len(around[a]) * len(around[b])), 12)

    for a, b, value in zip(*structural_similarity(layer), strict=True):
        assert value == pytest.approx(sigma(int(a), int(b)))
    near = {node: {other for other in around[node] if sigma(node, other) >= epsilon} for node in range(n)}
    core = {node for node in range(n) if len(near[node]) >= mu}
    graph = nx.Graph([(a, b) for a in core for b in near[a] & core])
    clusters = {node: min(part) for part in nx.connected_components(graph) for node in part}
    full = dict(clusters)
    for node in range(n):
        if node not in core and near[node] & core:
            full[node] = clusters[min(near[node] & core, key=lambda other: (-sigma(node, other), other))]
    expected = {}
    for node in range(n):
        expected.setdefault(("cluster", full[node]) if node in full else ("alone", node), []).append(node)
    assert parts(scan(layer, epsilon=epsilon, mu=mu, unclustered="own")) == sorted(expected.values())
    grown = scan(layer, epsilon=epsilon, mu=mu)
    own = scan(layer, epsilon=epsilon, mu=mu, unclustered="own")
    for part in parts(own):  # clusters only grow
        assert len(np.unique(grown[part])) == 1


def test_scan_follows_neighbours_outwards():
    """A clique with a chain of two: the chain's end has no clustered neighbour at first."""
    layer = layer_of(8, [*clique(*range(6)), (5, 6), (6, 7)])
    assert parts(scan(layer, epsilon=0.9)) == [list(range(8))]
    assert parts(scan(layer, epsilon=0.9, unclustered="own")) == [list(range(6)), [6], [7]]


def test_walks_follow_edges():
    layer, _ = planted(groups=2, size=6)
    layer = Layer(np.zeros((13, 2), np.float32), layer.edges)  # node 12 has no edge
    weights = symmetric(layer.edges, 13)
    for p, q in ((1.0, 1.0), (0.25, 4.0)):
        paths = random_walks(weights, 3, 12, p, q, seed=0)
        assert paths.shape == (36, 12)
        assert sorted(paths[:, 0].tolist()) == sorted([*range(12)] * 3)
        assert weights.toarray()[paths[:, :-1], paths[:, 1:]].all()
        assert paths.tobytes() == random_walks(weights, 3, 12, p, q, seed=0).tobytes()
        assert paths.tobytes() != random_walks(weights, 3, 12, p, q, seed=1).tobytes()
    assert random_walks(weights[12:, 12:], 3, 12, 1.0, 1.0, 0).shape == (0, 12)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.5)])
def test_steps_are_as_likely_as_node2vec_says(p, q):
    layer = layer_of(5, [(0, 1, 1.0), (0, 2, 2.0), (1, 2, 1.0), (1, 3, 3.0), (3, 4, 1.0)])
    weights = symmetric(layer.edges, 5)
    dense = weights.toarray()
    paths = random_walks(weights, 4000, 6, p, q, seed=3)
    for before, at in ((0, 1), (1, 0), (2, 1), (3, 1)):
        bias = np.array([1 / p if to == before else 1.0 if dense[before, to] else 1 / q for to in range(5)])
        expected = dense[at] * bias
        came = (paths[:, :-2] == before) & (paths[:, 1:-1] == at)
        counts = np.bincount(paths[:, 2:][came], minlength=5)
        assert counts.sum() > 1000
        assert counts / counts.sum() == pytest.approx(expected / expected.sum(), abs=0.03)
    first = paths[paths[:, 0] == 1, 1]
    assert np.bincount(first, minlength=5) / len(first) == pytest.approx(dense[1] / dense[1].sum(), abs=0.03)


def test_walks_of_the_node2vec_package_are_no_better():
    """Where the package is installed (it wants NumPy below 2): the same skip-gram on its walks."""
    package = pytest.importorskip("node2vec")
    from graphrag_bench.community.partitioners.node2vec_kmeans import skip_gram

    layer, truth = planted(groups=8, size=15, seed=2, inside=0.35, across=0.02)
    theirs = package.Node2Vec(
        nx.from_scipy_sparse_array(symmetric(layer.edges, len(layer))), walk_length=20, num_walks=5, seed=0, quiet=True
    )
    nodes, vectors = skip_gram(np.array([[int(node) for node in walk] for walk in theirs.walks]), 32, 5, 2, 0)
    other = adjusted_rand_score(truth[nodes], kmeans(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 8, 0))
    ours = node2vec_kmeans(layer, dimensions=32, walks=5, walk_length=20, context_size=5, epochs=2)
    assert adjusted_rand_score(truth, ours) > other - 0.1


def test_without_gensim_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gensim.models", None)
    with pytest.raises(UserError, match="gensim"):
        node2vec_kmeans(layer_of(3, clique(0, 1, 2)))


def test_k_means_of_equal_points():
    assert kmeans(np.ones((4, 2)), 3, 0).tolist() == [0, 0, 0, 0]
    assert kmeans(np.empty((0, 2)), 3, 0).tolist() == []
    assert len(set(kmeans(np.eye(3), 5, 0).tolist())) == 3


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("leiden", {"max_size": 0}), ("leiden", {"resolution": 0.0}), ("leiden", {"iterations": 0}),
        ("spectral", {"mean_size": 0}), ("spectral", {"dimensions": 0}), ("scan", {"epsilon": 0.0}), ("scan", {"mu": 0}),
        ("node2vec_kmeans", {"walk_length": 1}), ("node2vec_kmeans", {"q": 0.0}), ("node2vec_kmeans", {"p": float("nan")}),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(name, setting):
    (key,) = setting
    with pytest.raises(UserError, match=f"community.{key} is"):
        ALL[name](layer_of(2, [(0, 1)]), **setting)
