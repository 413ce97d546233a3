"""The passage graph against loops over all pairs: shared entities, TF-IDF keywords, nearest passages, and the hub's bound."""

import math
import random
import re
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph import sharing as module
from graphrag_bench.graph.builders.passage import build
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.sharing import sharing


def corpus(texts, titles=None):
    titles = titles or [""] * len(texts)
    rows = zip(texts, titles, strict=True)
    return tuple(Chunk(n, text, title, (f"d{n}",), len(text.split())) for n, (text, title) in enumerate(rows))


def built(entities, titles=None, embedder=None, **options):
    chunks = corpus([f"text {n}" for n in range(len(entities))], titles)
    extraction = Extraction(tuple(map(tuple, entities)), tuple(() for _ in entities))
    return build(chunks, extraction, embedder or HashingEmbedder(), **{"link_threshold": None, **options})


def edges(made):
    return [(row["source"], row["target"], row["weight"], row["name"]) for row in made.graph.relationships.to_pylist()]


class Table:
    """An embedder that looks its vectors up."""

    def __init__(self, vectors):
        self.vectors = {name: np.asarray(v, float) for name, v in vectors.items()}
        self.dim = len(next(iter(self.vectors.values())))
        self.identity = {"backend": "table"}

    def embed(self, texts, role="passage"):
        rows = np.stack([self.vectors[text] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def long_texts(self, texts):
        return 0


def test_node_i_is_chunk_i():
    made = built([["Ada"], ["Bob"]], titles=["Mill", ""])
    assert made.graph.nodes.to_pylist() == [
        {"name": "Mill", "text": "text 0"},
        {"name": "passage 1", "text": "text 1"},
    ]
    assert (made.graph.node_chunk.toarray() == np.eye(2)).all()
    assert made.graph.attributes == {"node.text"}


def test_chunks_that_share_an_entity_are_joined_once_and_the_name_holds_the_rarest():
    rows = [["Ada", "Bob", "Cid", "Dan"], ["ADA", "Bob", "cid.", "Dan"], ["Ada", "Eve"], ["Ada", "Bob"], ["Fay"]]
    made = built(rows)
    assert edges(made) == [
        (0, 1, 4, "Cid, Dan, Bob"),
        (0, 2, 1, "Ada"),
        (0, 3, 2, "Bob, Ada"),
        (1, 2, 1, "Ada"),
        (1, 3, 2, "Bob, Ada"),
        (2, 3, 1, "Ada"),
    ]
    assert set(made.graph.relationships["kind"].to_pylist()) == {"passage"}
    assert made.graph.relationship_chunk.toarray()[0].tolist() == [1, 1, 0, 0, 0]
    assert [edge[:2] for edge in edges(built(rows, min_shared=2))] == [(0, 1), (0, 3), (1, 3)]


def test_the_title_is_always_an_entity_and_a_number_never():
    made = built([["1984", "1904"], ["1904", "Titanic"], ["1984"]], titles=["Titanic (1997 film)", "", ""])
    assert edges(made) == [(0, 1, 1, "Titanic")]
    assert edges(built([[], ["1984"]], titles=["1984", "1984"])) == [(0, 1, 1, "1984")]


def test_a_chunk_without_entities_is_linked_by_the_ends_of_its_triples():
    extraction = Extraction(((), ("Ada",)), ((("Ada", "built", "mill"),), (("Bob", "saw", "mill"),)))
    made = build(corpus(["a", "b"]), extraction, HashingEmbedder(), link_threshold=None)
    assert edges(made) == [(0, 1, 1, "Ada")]


def test_names_are_linked_by_embedding_to_a_more_frequent_one_without_chaining():
    near = {"Robert Smith": [1, 0, 0], "Bob Smith": [1, 0.5, 0], "Rob S.": [1, 1.4, 0]}  # cosines .89, .81 and .58
    rows = [["Robert Smith"], ["Robert Smith"], ["Bob Smith"], ["Rob S."]]
    made = built(rows, embedder=Table(near), link_threshold=0.8)
    assert [edge[:2] for edge in edges(made)] == [(0, 1), (0, 2), (1, 2)]
    assert made.facts["names_linked_by_embedding"] == 1
    same = {"World War 1": [1, 0], "World War 2": [1, 0.01]}
    assert edges(built([["World War 1"], ["World War 2"]], embedder=Table(same), link_threshold=0.8)) == []


def test_a_hub_joins_nothing_and_its_pairs_are_counted():
    rows = [["Hub", f"pair {n // 2}"] for n in range(40)]
    made = built(rows, max_chunks_per_entity=39)
    assert [edge[:2] for edge in edges(made)] == [(n, n + 1) for n in range(0, 40, 2)]
    assert made.facts["entities_too_common"] == 1
    assert made.facts["pairs_lost"] == 40 * 39 // 2
    assert made.facts["pairs"] == made.facts["edges"] == 20
    assert len(edges(built(rows, max_chunks_per_entity=40))) == 40 * 39 // 2


def test_a_graph_of_too_many_pairs_is_refused_before_it_is_made():
    with pytest.raises(UserError, match="780 pairs") as error:
        built([["Hub"]] * 40, max_pairs=779)
    assert "max_chunks_per_entity" in error.value.fix


@given(st.integers(0, 2**16), st.integers(1, 3), st.integers(2, 12), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_sharing_equals_a_loop_over_all_pairs(seed, min_shared, limit, block):
    rng = random.Random(seed)
    names = [f"{letter}é名" for letter in "abcdefghij"]
    rows = [rng.sample(names, rng.randint(0, 6)) for _ in range(rng.randint(1, 14))]
    before, module._BLOCK = module._BLOCK, block
    try:
        made = built(rows, min_shared=min_shared, max_chunks_per_entity=limit)
    finally:
        module._BLOCK = before
    held = Counter(name for row in rows for name in row)
    first = {name: number for number, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    expected = []
    for a, b in combinations(range(len(rows)), 2):
        shared = [name for name in set(rows[a]) & set(rows[b]) if held[name] <= limit]
        shared.sort(key=lambda name: (held[name], first[name]))
        if len(shared) >= min_shared:
            expected.append((a, b, float(len(shared)), ", ".join(shared[:3])))
    assert edges(made) == expected


def test_sharing_equals_the_matrix_product():
    rng = np.random.default_rng(5)
    matrix = sparse.csr_array((rng.random((60, 25)) < 0.1).astype(np.float32))
    matrix.sort_indices()
    found = sharing(matrix, 1, 3)
    product = np.triu((matrix @ matrix.T).toarray(), 1)
    dense = np.zeros_like(product)
    dense[found.source, found.target] = found.shared
    assert (dense == product).all()


WORDS = ["mill", "river", "bridge", "tower", "bakery", "lantern", "zürich", "ferry", "copper", "glacier", "orchard"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("keywords", [1, 3, 30])
def test_keywords_are_the_words_of_greatest_tfidf(seed, keywords):
    rng = random.Random(seed)
    texts = [" ".join(["The", *rng.choices(WORDS, k=rng.randint(0, 9)), f"only{n}"]) for n in range(12)] + [""]
    made = build(corpus(texts), Extraction(((),) * 13, ((),) * 13), HashingEmbedder(), link="tfidf", keywords=keywords)
    counts = [Counter(word for word in re.findall(r"\w\w+", text.lower()) if word in WORDS) for text in texts]
    held = Counter(word for row in counts for word in row)

    def weight(row, word):
        return row[word] * (math.log(14 / (1 + held[word])) + 1)

    top = [
        set(sorted((w for w in row if held[w] > 1), key=lambda w: (-round(weight(row, w), 7), w))[:keywords])
        for row in counts
    ]
    expected = [(a, b, len(top[a] & top[b])) for a, b in combinations(range(13), 2) if top[a] & top[b]]
    assert [edge[:3] for edge in edges(made)] == expected


def test_knn_equals_a_loop_over_all_pairs():
    rng = np.random.default_rng(3)
    texts = [f"t{n}" for n in range(30)]
    vectors = {text: rng.normal(size=4) for text in texts}
    vectors["t7"] = vectors["t3"]
    made = build(corpus(texts), Extraction(((),) * 30, ((),) * 30), Table(vectors), link="knn", knn=4)
    matrix = Table(vectors).embed(texts)
    cosine = (matrix @ matrix.T).astype(float).round(6)
    expected = {}
    for a in range(30):
        best = sorted((b for b in range(30) if b != a), key=lambda b: (-cosine[a, b], b))[:4]
        expected |= {(min(a, b), max(a, b)): cosine[a, b] for b in best if cosine[a, b] > 0}
    assert [edge[:2] for edge in edges(made)] == sorted(expected)
    assert np.allclose([edge[2] for edge in edges(made)], [expected[key] for key in sorted(expected)], atol=2e-6)


@pytest.mark.parametrize("link", ["entities", "tfidf", "knn"])
@pytest.mark.parametrize("texts", [["one passage alone"], ["", ""], ["", "words here", "words here"]])
def test_small_corpora(link, texts, tmp_path):
    none = Extraction(((),) * len(texts), ((),) * len(texts))
    made = build(corpus(texts), none, HashingEmbedder(), link=link)
    assert made.graph.n_nodes == len(texts)
    assert all(edge[0] < edge[1] for edge in edges(made))
    made.graph.save(tmp_path)
    assert Graph.open(tmp_path).relationships.equals(made.graph.relationships)


def test_the_same_corpus_gives_the_same_graph():
    rng = random.Random(1)
    rows = [rng.sample(["Ümit", "東京", "Ada", "Bob", "Cid", "Dan"], 3) for _ in range(30)]
    first, again = built(rows, link_threshold=0.8), built(rows, link_threshold=0.8)
    assert first.graph.relationships.equals(again.graph.relationships)
    assert first.facts == again.facts


@pytest.mark.parametrize("setting", ["min_shared", "keywords", "knn", "max_chunks_per_entity"])
def test_settings_below_one_are_refused(setting):
    with pytest.raises(UserError, match=f"graph.{setting} is 0"):
        built([["a"]], **{setting: 0})
