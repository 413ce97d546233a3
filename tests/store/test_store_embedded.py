"""Embedding through the store: a list of passages once, questions never."""

import numpy as np

from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.progress import Silent
from graphrag_bench.store import embedded
from graphrag_bench.store.artifacts import Store
from graphrag_bench.store.embedded import StoredEmbedder

TEXTS = ["a rather long passage about the mill", "mill", "the river", "mill", "ü", "a long passage"]


class Counting(HashingEmbedder):
    def __init__(self, dim=32):
        super().__init__(dim=dim)
        self.asked = []

    def embed(self, texts, role="passage"):
        self.asked.append((list(texts), role))
        return super().embed(texts, role)


def stored(root, inner):
    return StoredEmbedder(inner, Store(root), Silent(), "chunk vectors")


def test_passages_are_embedded_once_in_blocks_and_given_back_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "_BLOCK", 2)
    inner = Counting()
    found = stored(tmp_path, inner).embed(TEXTS)
    np.testing.assert_array_equal(found, HashingEmbedder(dim=32).embed(TEXTS))
    assert [len(texts) for texts, _ in inner.asked] == [2, 2, 2]
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    inner.asked.clear()
    again = stored(tmp_path, inner)
    np.testing.assert_array_equal(again.embed(TEXTS), found)
    assert inner.asked == []
    (artifact,) = again.artifacts.values()
    assert (artifact.built, artifact.facts["texts"], artifact.facts["dim"]) == (False, 6, 32)


def test_questions_and_no_texts_at_all_go_past_the_store(tmp_path):
    inner = Counting()
    embedder = stored(tmp_path, inner)
    assert embedder.embed(["who?"], "query").shape == (1, 32)
    assert embedder.embed([]).shape == (0, 32)
    assert inner.asked == [(["who?"], "query"), ([], "passage")]
    assert list(tmp_path.iterdir()) == []
    assert (embedder.dim, embedder.identity, embedder.long_texts(["x"])) == (32, inner.identity, 0)


def test_the_vectors_are_keyed_by_the_texts_and_the_embedder(tmp_path):
    keys = {
        stored(tmp_path, Counting(dim)).spec(texts).key for dim in (32, 64) for texts in (TEXTS, TEXTS[::-1], TEXTS[:5])
    }
    assert len(keys) == 6
