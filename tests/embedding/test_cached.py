import numpy as np

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.cached import CachedEmbedder
from graphrag_bench.embedding.hashing import HashingEmbedder


class Spy(HashingEmbedder):
    def __init__(self):
        super().__init__(dim=16)
        self.seen = []

    def embed(self, texts, role="passage"):
        self.seen.append((role, list(texts)))
        return super().embed(texts, role)


def test_a_text_is_embedded_once_a_call_and_in_order():
    spy = Spy()
    cached = CachedEmbedder(spy)
    rows = cached.embed(["b", "a", "b"])
    assert spy.seen == [("passage", ["b", "a"])]
    assert (rows == HashingEmbedder(dim=16).embed(["b", "a", "b"])).all()
    assert isinstance(cached, Embedder)
    assert cached.identity == spy.identity


def test_texts_are_remembered_by_role():
    spy = Spy()
    cached = CachedEmbedder(spy)
    cached.embed(["a"], "query")
    cached.embed(["a", "c"], "query")
    cached.embed(["a"], "passage")
    assert spy.seen == [("query", ["a"]), ("query", ["c"]), ("passage", ["a"])]


def test_the_least_recent_is_forgotten():
    spy = Spy()
    cached = CachedEmbedder(spy, capacity=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed([text])
    assert [texts for _, texts in spy.seen] == [["a"], ["b"], ["c"], ["b"]]


def test_a_corpus_does_not_empty_the_memory():
    spy = Spy()
    cached = CachedEmbedder(spy, capacity=2)
    cached.embed(["a"])
    cached.embed(["x", "y", "z"])
    cached.embed(["a"])
    assert len(spy.seen) == 2


def test_changing_what_was_returned_changes_no_memory():
    cached = CachedEmbedder(HashingEmbedder(dim=16))
    first = cached.embed(["a"])
    kept = first.copy()
    first[:] = 0
    assert (cached.embed(["a"]) == kept).all()


def test_stats_count_what_was_asked_and_what_was_worked():
    cached = CachedEmbedder(HashingEmbedder(dim=16))
    cached.embed(["abcdef", "abcdef", "x"])
    cached.embed(["x"])
    stats = cached.stats
    assert (stats.calls, stats.asked, stats.embedded, stats.tokens) == (2, 4, 2, 3)
    assert stats.wall_seconds > 0


def test_no_text():
    cached = CachedEmbedder(HashingEmbedder(dim=16))
    assert cached.embed([]).shape == (0, 16)
    assert np.issubdtype(cached.embed([]).dtype, np.float32)
