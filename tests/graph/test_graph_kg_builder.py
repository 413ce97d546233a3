"""The knowledge graph of an extraction: which phrases are one node, what a weight counts, which names are synonyms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders.kg import build
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.synonyms import phrase_key


class Table:
    """An embedder that looks its vectors up."""

    def __init__(self, vectors, dim):
        self.vectors = {name: np.asarray(v, float) for name, v in vectors.items()}
        self.dim = dim
        self.identity = {"backend": "table"}
        self.asked = []

    def embed(self, texts, role="passage"):
        self.asked.extend(texts)
        rows = np.stack([self.vectors[text] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def long_texts(self, texts):
        return 0


def chunks(count):
    return tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(count))


def built(*triples_by_chunk, entities=None, embedder=None, synonym_threshold=None, **settings):
    rows = tuple(tuple(row) for row in triples_by_chunk)
    names = tuple(map(tuple, entities)) if entities else tuple(() for _ in rows)
    return build(
        chunks(len(rows)),
        Extraction(names, rows),
        embedder or HashingEmbedder(),
        synonym_threshold=synonym_threshold,
        **settings,
    )


def rows_of(graph, kind):
    return [
        (graph.names([r["source"]])[0], r["name"], graph.names([r["target"]])[0], r["weight"])
        for r in graph.relationships.to_pylist()
        if r["kind"] == kind
    ]


def names(graph):
    return graph.nodes["name"].to_pylist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada Brown", "ada brown"),
        ("Ada Brown", "Ada  Brown!"),
        ("U.S.A.", "u s a"),
        ("Jean-Luc", "Jean Luc"),
        ("snake_case", "snake case"),
        ("STRASSE", "straße"),
        ("Ame\u0301lie", "Am\u00e9lie"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_one_node_up_to_case_and_punctuation(one, other):
    assert phrase_key(one) == phrase_key(other)
    graph = built([(one, "met", "Bob"), (other, "saw", "Bob")])
    assert names(graph) == [one, "Bob"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ulm", "Ülm"),
        ("कल", "कला"),
        ("北京", "東京"),
        ("Ada 1", "Ada 2"),
        ("Müller", "Muller"),
        ("กา", "กิ"),
    ],
)
def test_other_letters_and_other_marks_are_other_nodes(one, other):
    graph = built([(one, "met", other)])
    assert names(graph) == [one, other]


def test_a_phrase_without_letters_or_digits_is_no_node():
    assert [phrase_key(text) for text in ("...", " - ", "_", "—", "❤\ufe0f")] == [""] * 5
    graph = built(
        [("...", "is", "Ada"), ("Ada", "is", "!?"), ("Ada", "?", "Ulm")], entities=[["--", "Bob"]], nodes="all"
    )
    assert names(graph) == ["Ada", "Ulm", "Bob"]
    assert rows_of(graph, "fact") == [("Ada", "?", "Ulm", 1.0)]


def test_direction_parallel_relationships_and_loops_are_kept():
    graph = built([("Ada", "met", "Bob"), ("Bob", "met", "Ada"), ("Ada", "likes", "Bob"), ("Ada", "knows", "ada")])
    assert rows_of(graph, "fact") == [
        ("Ada", "met", "Bob", 1.0),
        ("Bob", "met", "Ada", 1.0),
        ("Ada", "likes", "Bob", 1.0),
        ("Ada", "knows", "Ada", 1.0),
    ]


def test_the_weight_counts_the_chunks_that_state_it():
    fact = ("Ada", "met", "Bob")
    graph = built([fact, fact, ("ADA", "Met!", "bob")], [], [fact, ("Bob", "met", "Ada")])
    # chunks 0 and 2; said three times in chunk 0 is said once there
    assert rows_of(graph, "fact") == [("Ada", "met", "Bob", 2.0), ("Bob", "met", "Ada", 1.0)]
    assert graph.relationship_chunk.toarray().tolist() == [[1, 0, 1], [0, 0, 1]]
    assert graph.node_chunk.toarray().tolist() == [[1, 0, 1], [1, 0, 1]]
    assert graph.n_chunks == 3
    assert graph.statistics()["chunks_without_node"] == 1


def test_entities_without_a_triple_are_nodes_only_when_asked():
    asked = {"entities": [["Ada", "Zed"], ["zed"]]}
    assert names(built([("Ada", "met", "Bob")], [], **asked)) == ["Ada", "Bob"]
    graph = built([("Ada", "met", "Bob")], [], **asked, nodes="all")
    assert names(graph) == ["Ada", "Bob", "Zed"]
    assert graph.node_chunk.toarray().tolist() == [[1, 0], [1, 0], [1, 1]]
    assert graph.statistics()["isolated_nodes"] == 1


def at(degrees):
    return [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]


def circle(**degrees):
    """Names as directions in a plane: the cosine of two is that of the angle between them."""
    return Table({name: at(angle) for name, angle in degrees.items()}, dim=2)


def test_synonyms_reach_the_threshold_once_each_with_the_cosine_as_weight():
    embedder = circle(alpha=0, bravo=30, carol=65, delta=180)
    graph = built([("alpha", "met", "bravo"), ("carol", "met", "delta")], embedder=embedder, synonym_threshold=0.8)
    found = rows_of(graph, "synonym")
    assert [row[:3] for row in found] == [("alpha", "synonym of", "bravo"), ("bravo", "synonym of", "carol")]
    np.testing.assert_allclose([row[3] for row in found], np.cos(np.radians([30, 35])), atol=1e-6)
    assert graph.kinds.tolist() == [0, 0, 1, 1]
    assert graph.facts.tolist() == [0, 1]
    assert embedder.asked == ["alpha", "bravo", "carol", "delta"]
    # a synonym is stated by no chunk
    assert graph.relationship_chunk.shape == (4, 1)
    assert graph.relationship_chunk.toarray()[2:].sum() == 0
    loose = built([("alpha", "met", "bravo"), ("carol", "met", "delta")], embedder=embedder, synonym_threshold=0.42)
    assert len(rows_of(loose, "synonym")) == 3


def test_names_of_two_letters_or_digits_have_no_synonyms():
    embedder = Table({name: [1.0, 0.0] for name in ("U.K.", "uk2", "a-b", "abc", "é́a")}, dim=2)
    graph = built(
        [("U.K.", "x", "uk2"), ("a-b", "x", "abc"), ("é́a", "x", "abc")], embedder=embedder, synonym_threshold=0.8
    )
    assert [row[:3:2] for row in rows_of(graph, "synonym")] == [("uk2", "abc")]


def test_top_k_keeps_a_pair_that_is_near_enough_for_either_end():
    embedder = circle(alpha=0, bravo=10, carol=21, delta=33)
    # nearest: alpha-bravo, bravo-alpha, carol-bravo, delta-carol
    made = [("alpha", "x", "bravo"), ("carol", "x", "delta")]
    one = rows_of(built(made, embedder=embedder, synonym_threshold=0.5, synonym_top_k=1), "synonym")
    assert [row[:3:2] for row in one] == [("alpha", "bravo"), ("bravo", "carol"), ("carol", "delta")]
    assert len(rows_of(built(made, embedder=embedder, synonym_threshold=0.5, synonym_top_k=2), "synonym")) == 5
    assert len(rows_of(built(made, embedder=embedder, synonym_threshold=0.5), "synonym")) == 6
    assert rows_of(built(made, embedder=embedder, synonym_threshold=None), "synonym") == []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.6, 0.9]), st.sampled_from([1, 2, 3, 100]))
def test_synonyms_equal_a_loop_over_all_pairs(seed, threshold, top_k):
    rng = np.random.default_rng(seed)
    spelled = [f"name {letter}{letter}" for letter in "abcdefgh"[: int(rng.integers(2, 9))]]
    # directions on a grid of 15 degrees: ties are common, and no cosine lies at a threshold
    embedder = Table({name: at(15 * rng.integers(0, 24) + 0.0) for name in spelled}, dim=2)
    graph = built(
        [(name, "x", spelled[0]) for name in spelled],
        embedder=embedder,
        synonym_threshold=threshold,
        synonym_top_k=top_k,
    )
    matrix = embedder.embed(spelled).astype(float)
    cosine = np.round(matrix @ matrix.T, 6)
    n = len(spelled)
    reach = [
        [j for j in sorted(range(n), key=lambda j: (-cosine[i, j], j)) if j != i and cosine[i, j] >= threshold][:top_k]
        for i in range(n)
    ]
    expected = [(spelled[i], spelled[j]) for i in range(n) for j in range(i + 1, n) if j in reach[i] or i in reach[j]]
    assert [row[:3:2] for row in rows_of(graph, "synonym")] == expected


def test_building_twice_gives_the_same_graph_and_renaming_first_spellings_does_not_change_its_shape():
    triples = [
        ("Ada Brown", "built", "Glass Bridge"),
        ("glass bridge", "is in", "Norhaven"),
        ("Glass Bridges", "x", "Ada"),
    ]
    one, two = (built(triples[:2], triples[2:], synonym_threshold=0.3) for _ in range(2))
    assert one.nodes.equals(two.nodes)
    assert one.relationships.equals(two.relationships)
    assert (one.node_chunk != two.node_chunk).nnz == 0
    shouted = built(
        [tuple(part.upper() for part in t) for t in triples[:2]],
        [tuple(part.upper() for part in t) for t in triples[2:]],
        synonym_threshold=0.3,
    )
    assert shouted.relationships.drop(["name"]).equals(one.relationships.drop(["name"]))


def test_nothing_extracted_is_a_graph_without_nodes():
    graph = built([], [], synonym_threshold=0.8)
    assert (graph.n_nodes, graph.n_relationships, graph.n_chunks) == (0, 0, 2)
    assert graph.statistics()["nodes"] == 0
    one = built([("Ada", "knows", "Ada")], synonym_threshold=0.8)
    assert (one.n_nodes, one.n_relationships) == (1, 1)
    assert graph.attributes == {"node.name", "relationship.name", "relationship.weight"}
