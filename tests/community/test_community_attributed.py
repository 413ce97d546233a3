"""Attributed clustering: the loop by hand, what every hierarchy must be, and reports written inside it."""

import asyncio
import gzip
import json
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.community.augmenters.codicil import codicil
from graphrag_bench.community.augmenters.knn import knn
from graphrag_bench.community.clusterers.attributed import attributed
from graphrag_bench.community.coarsening import fact_counts, mean_vectors, renumbered, stacked
from graphrag_bench.community.partitioners.leiden import leiden
from graphrag_bench.community.reporters.extractive import extractive
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import ReportRows


class Points:
    """Embeds a node's name by a given vector, and any other text by where its letters send it."""

    def __init__(self, vectors):
        self.vectors = np.asarray(vectors, dtype=np.float32)
        self.dim = self.vectors.shape[1]
        self.identity = {"backend": "points"}
        self.asked = []

    def embed(self, texts, role="passage"):
        assert role == "passage"
        assert all(text.strip() for text in texts), "embedders refuse an empty text"
        self.asked.append(list(texts))
        rows = [
            self.vectors[int(text[1:])]
            if text[1:].isdigit() and text[0] == "n"
            else np.random.default_rng(list(text.encode()) or 0).standard_normal(self.dim)
            for text in texts
        ]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), self.dim)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)

    def long_texts(self, texts):
        return 0


def run(graph, at, partition, *, augment=None, write=None, **kwargs):
    embedder = at if isinstance(at, Points) else Points(at)
    kwargs = {"vectors": "members", "min_communities": 1, **kwargs}
    return asyncio.run(attributed(graph, embedder, augment, partition, write, **kwargs))


def halves(layer):
    """Neighbours by number go together, two and two."""
    return np.arange(len(layer)) // 2


def nodes_of(hierarchy, level=None):
    chosen = range(len(hierarchy)) if level is None else np.flatnonzero(hierarchy.level == level)
    return [hierarchy.nodes(int(c)).tolist() for c in chosen]


def random_graph(small, n, m, seed):
    rng = np.random.default_rng(seed)
    edges = [
        (int(a), int(b), float(w)) for a, b, w in zip(*rng.integers(0, n, (2, m)), rng.random(m) + 0.1, strict=True)
    ]
    return small.graph_of(n, edges), rng.standard_normal((n, 6))


def test_layer_upon_layer(small):
    """Eight nodes, halved three times: level 0 is the last layer, numbered by the smallest node."""
    seen = []

    def watched(layer):
        seen.append(layer)
        return halves(layer)[::-1].copy() * 7 if len(layer) == 4 else halves(layer)  # any labels

    graph = small.graph_of(8, [(0, 1, 5.0), (1, 2, 1.0), (2, 1, 1.0), (1, 3, 2.0), (6, 7, 1.0), (5, 6, 0.0)])
    found = run(graph, np.eye(8), watched, min_communities=2, isolated="own", weight="given")
    assert nodes_of(found.hierarchy) == [
        [0, 1, 2, 3], [4, 5, 6, 7], [0, 1], [2, 3], [4, 5], [6, 7],
    ]  # fmt: skip
    assert found.hierarchy.level.tolist() == [0, 0, 1, 1, 1, 1]
    assert found.hierarchy.parent.tolist() == [-1, -1, 0, 0, 1, 1]
    assert found.reports is None
    assert found.facts["stopped"] == "min_communities"
    assert [fact["communities"] for fact in found.facts["layers"]] == [4, 2]
    assert found.facts["layers"][0] == {
        "nodes": 8, "edges": 4, "augmented": 4, "isolated": 2, "communities": 4, "largest": 2,
    }  # fmt: skip
    # the second layer: three facts run between {0, 1} and {2, 3}, the one without weight joins nothing
    assert [part.tolist() for part in seen[1].edges] == [[0], [1], [3.0]]
    assert seen[1].vectors[0] == pytest.approx(np.eye(8)[:2].sum(axis=0) / 2**0.5)
    assert [part.tolist() for part in seen[0].edges] == [[0, 1, 1, 6], [1, 2, 3, 7], [5.0, 2.0, 2.0, 1.0]]


def test_edges_weigh_the_cosine_of_their_ends_and_never_nothing(small):
    seen = []

    def watched(layer):
        seen.append(layer.edges)
        return halves(layer)

    vectors = [[1, 0], [1, 1], [-1, 0], [0, 1]]
    graph = small.graph_of(4, [(0, 1, 9.0), (0, 2, 9.0), (2, 3, 9.0)])
    run(graph, vectors, watched, isolated="own", max_layers=1)
    assert seen[0][2].tolist() == [0.707107, 0.001, 0.001]


def test_isolated_nodes_join_their_nearest_or_stay_alone(small):
    graph = small.graph_of(5, [(0, 1)])
    vectors = [[1, 0], [1, 0.1], [0, 1], [0.05, 1], [1, 0.05]]
    assert nodes_of(run(graph, vectors, leiden, max_layers=1).hierarchy) == [[0, 1, 4], [2, 3]]
    assert nodes_of(run(graph, vectors, leiden, isolated="own", max_layers=1).hierarchy) == [[0, 1], [2], [3], [4]]
    assert run(graph, vectors, leiden).facts["layers"][0]["isolated"] == 3


@pytest.mark.parametrize(
    ("limit", "layers", "why"),
    [
        ({"max_layers": 2}, 2, "max_layers"),
        ({"min_communities": 3}, 2, "min_communities"),
        ({"min_communities": 8}, 1, "min_communities"),
        ({}, 4, "no_reduction"),
    ],
)
def test_where_it_ends(small, limit, layers, why):
    found = run(small.graph_of(16, []), np.eye(16), halves, **{"max_layers": 9, **limit})
    assert len(np.unique(found.hierarchy.level)) == layers
    assert found.facts["stopped"] == why


def test_as_many_communities_as_nodes_are_no_layer(small):
    found = run(small.graph_of(3, []), np.eye(3), lambda layer: np.arange(3)[::-1])
    assert len(found.hierarchy) == 0 and found.hierarchy.members.shape == (0, 3)
    assert found.facts == {"layers": [], "stopped": "no_reduction"}
    assert len(run(small.graph_of(0, []), np.empty((0, 2)), halves).hierarchy) == 0


def check(hierarchy, n):
    """Every layer holds every node once, a child lies in its parent one level above, ids go by level and smallest node."""
    firsts = [(level, nodes[0]) for level, nodes in zip(hierarchy.level.tolist(), nodes_of(hierarchy), strict=True)]
    assert firsts == sorted(firsts)
    for level in range(int(hierarchy.level.max(initial=-1)) + 1):
        assert sorted(node for part in nodes_of(hierarchy, level) for node in part) == list(range(n))
    for community in range(len(hierarchy)):
        parent = int(hierarchy.parent[community])
        if hierarchy.level[community] == 0:
            assert parent == -1
        else:
            assert hierarchy.level[parent] == hierarchy.level[community] - 1
            assert set(hierarchy.nodes(community).tolist()) <= set(hierarchy.nodes(parent).tolist())


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 30), st.integers(0, 40), st.integers(0, 99), st.sampled_from(["nearest", "own"]),
    st.sampled_from(["cosine", "given"]), st.booleans(), st.integers(1, 4),
)  # fmt: skip
def test_every_hierarchy_is_one(small, n, m, seed, isolated, weight, near, least):
    graph, vectors = random_graph(small, n, m if n else 0, seed)
    given_ = {"isolated": isolated, "weight": weight, "min_communities": least, "augment": knn if near else None}
    found = run(graph, vectors, partial(leiden, max_size=4), **given_)
    check(found.hierarchy, n)
    sizes = [len(nodes_of(found.hierarchy, level)) for level in range(int(found.hierarchy.level.max(initial=-1)) + 1)]
    assert sizes == sorted(set(sizes)) and all(least <= size < n for size in sizes)
    assert sizes[::-1] == [fact["communities"] for fact in found.facts["layers"]]
    again = run(graph, vectors, partial(leiden, max_size=4), **given_)
    assert again.hierarchy.members.indices.tobytes() == found.hierarchy.members.indices.tobytes()
    assert again.facts == found.facts


def write_with(small_graph_seen):
    async def write(graph, written):
        small_graph_seen.append((graph, written))
        return extractive(graph, None, written)

    return write


def test_reports_are_written_layer_by_layer_and_decide_the_next(small):
    graph, vectors = random_graph(small, 40, 60, 1)
    seen = []
    points = Points(vectors)
    found = run(graph, points, partial(leiden, max_size=4), vectors="reports", write=write_with(seen), max_layers=3)
    levels = int(found.hierarchy.level.max()) + 1
    assert levels == len(seen) == 3
    for number, (grown, written) in enumerate(seen):
        hierarchy = grown.communities
        assert int(hierarchy.level.max()) == number and "community.report" not in grown.attributes
        check(hierarchy, 40)
        if number == 0:
            assert written is None
            continue
        before = seen[number - 1][0].communities
        assert len(written) == len(before)  # its communities are the last of this hierarchy, in the same order
        new = len(hierarchy) - len(before)
        assert nodes_of(hierarchy)[new:] == nodes_of(before)
        assert (hierarchy.level[new:] - 1).tolist() == before.level.tolist()
    assert len(found.reports) == len(found.hierarchy)
    assert found.reports.table.slice(len(found.reports) - len(seen[2][1])).equals(seen[2][1].table)
    # entities, then the reports on each layer but the last: title and summary
    assert [len(texts) for texts in points.asked] == [40, *(fact["communities"] for fact in found.facts["layers"][:2])]
    said = found.reports.table["title"].to_pylist()
    assert points.asked[2][0].startswith(said[np.flatnonzero(found.hierarchy.level == 1)[0]])
    members = run(graph, vectors, partial(leiden, max_size=4), max_layers=3)
    assert nodes_of(members.hierarchy, 2) == nodes_of(found.hierarchy, 2)  # the first layer hangs on no report


def test_a_community_whose_report_failed_stands_where_its_entities_do(small):
    seen = []

    async def write(graph, written):
        rows = ReportRows()
        for number in range(graph.n_communities):
            rows.add(**({"failed": "refused"} if number == 0 else {"title": "t", "summary": f"s{number}"}))
        return rows.reports()

    def watched(layer):
        seen.append(layer)
        return halves(layer)

    vectors = np.eye(6)
    found = run(small.graph_of(6, []), vectors, watched, vectors="reports", write=write, max_layers=2)
    assert seen[1].vectors[0] == pytest.approx((vectors[0] + vectors[1]) / 2**0.5)
    assert seen[1].vectors[1] == pytest.approx(Points(vectors).embed(["t: s1"])[0])
    assert found.reports.failed == {0: "refused"}


def test_reports_need_a_writer(small):
    with pytest.raises(UserError, match="needs reports"):
        run(small.graph_of(2, []), np.eye(2), halves, vectors="reports")


@pytest.mark.parametrize("setting", [{"max_layers": 0}, {"min_communities": 0}])
def test_settings_out_of_range_are_refused(small, setting):
    (name,) = setting
    with pytest.raises(UserError, match=f"community.{name} is"):
        run(small.graph_of(2, []), np.eye(2), halves, **setting)


def test_planted_themes_are_found_where_facts_say_little(small):
    """Twelve topics of ten nodes with few facts, most across: vectors say what the facts do not."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 12
    vectors = np.eye(12)[truth] + 0.1 * rng.standard_normal((120, 12))
    graph = small.graph_of(120, [(int(a), int(b)) for a, b in rng.integers(0, 120, (60, 2))])
    found = run(graph, vectors, leiden, augment=partial(knn, neighbours=4))
    finest = nodes_of(found.hierarchy, int(found.hierarchy.level.max()))
    pure = sum(np.bincount(truth[part]).max() for part in finest) / 120
    plain = nodes_of(run(graph, vectors, leiden, weight="given", isolated="own", max_layers=1).hierarchy)
    assert pure > 0.95 > 0.6 > sum(np.bincount(truth[part]).max() for part in plain if len(part) > 1) / 120


def test_labels_are_renumbered_by_their_first_node():
    assert renumbered(np.array([7, 7, -1, 3, -1])).tolist() == [0, 0, 1, 2, 1]
    assert renumbered(np.empty(0, np.int64)).tolist() == []


def test_counts_between_communities_are_networkxs_quotient(small):
    graph, _ = random_graph(small, 30, 80, 2)
    labels = renumbered(np.random.default_rng(0).integers(0, 7, 30))
    count = int(labels.max()) + 1
    facts = nx.MultiGraph(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    facts.add_nodes_from(range(30))
    left, right, weight = fact_counts(graph, labels, count)
    between = {}
    for a, b in facts.edges():
        if labels[a] != labels[b]:
            key = tuple(sorted((int(labels[a]), int(labels[b]))))
            between[key] = between.get(key, 0) + 1
    assert dict(zip(zip(left.tolist(), right.tolist(), strict=True), weight.tolist(), strict=True)) == between


def test_mean_vectors():
    found = mean_vectors(np.array([[1, 0], [0, 1], [1, 0], [-1, 0]], np.float32), np.array([1, 1, 0, 0]), 3)
    assert found == pytest.approx(np.array([[0, 0], [0.5**0.5, 0.5**0.5], [0, 0]]))
    assert found.dtype == np.float32


def test_no_layers_are_a_hierarchy_too():
    assert len(stacked([], 4)) == 0 and stacked([], 4).members.shape == (0, 4)


@pytest.mark.shared
def test_on_a_real_graph_augmented_communities_are_better_than_plain_ones(small, shared_data):
    """The paper's Table 7 and Figures 7 and 8, on letters of names for vectors: CHI and the cosine to the mean rise."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import calinski_harabasz_score

    with gzip.open(shared_data / "musique_train100" / "openie.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for _, line in zip(range(500), lines, strict=False)]
    triples = [(a.casefold(), b.casefold()) for row in rows for a, _, b in row["triples"] if a.strip() and b.strip()]
    names = sorted({name for pair in triples for name in pair})
    number = {name: at for at, name in enumerate(names)}
    graph = small.graph_of(len(names), [(number[a], number[b]) for a, b in triples])
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=4000).fit_transform(names)
    vectors = TruncatedSVD(64, random_state=0).fit_transform(letters) + 1e-6
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def quality(**kwargs):
        hierarchy = run(graph, vectors, leiden, max_layers=1, **kwargs).hierarchy
        labels = hierarchy.members.tocsc().indices
        means = np.array([unit[part].mean(axis=0) for part in nodes_of(hierarchy)])[labels]
        cosine = (unit * means).sum(axis=1) / np.linalg.norm(means, axis=1)
        return calinski_harabasz_score(unit, labels), cosine.mean(), len(hierarchy)

    plain = quality(weight="given")
    for augment in (knn, codicil):
        augmented = quality(augment=augment)
        assert augmented[0] > 1.3 * plain[0] and augmented[1] > plain[1] + 0.05, (plain, augmented)
        assert augmented[2] < 1.1 * plain[2]  # and not by many more and smaller communities
