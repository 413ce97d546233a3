"""The lexical index over chunks: BM25, through the bm25s library."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANGUAGE = "english"


class LexicalIndex:
    """A BM25 index over chunk texts."""

    def __init__(self, engine: Any, size: int) -> None:
        self._engine = engine
        self._size = size

    @classmethod
    def build(cls, texts: Sequence[str], folder: Path, *, k1: float, b: float) -> "LexicalIndex":
        """Index the texts and write the index into ``folder``."""
        import bm25s

        engine = bm25s.BM25(k1=k1, b=b, method="lucene")
        tokens = _tokens(texts)
        if not any(tokens.ids):
            tokens = bm25s.tokenization.Tokenized(ids=[[0] for _ in texts], vocab={"": 0})
        engine.index(tokens, show_progress=False)
        engine.save(folder, show_progress=False)
        return cls(engine, len(texts))

    @classmethod
    def open(cls, folder: Path, size: int) -> "LexicalIndex":
        """Open a saved index, memory-mapped."""
        import bm25s

        return cls(bm25s.BM25.load(folder, mmap=True), size)

    def search(self, texts: Sequence[str], top_k: int) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Return for each text the ids and scores of the ``top_k`` best chunks with a shared word, ties by rising id."""
        return [self._one(words, top_k) for words in _words(texts)]

    def _one(self, words: list[str], top_k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        known = [word for word in words if word in self._engine.vocab_dict]
        if not known:
            return np.empty(0, np.int64), np.empty(0)
        scores = np.asarray(self._engine.get_scores(known), dtype=np.float64)[: self._size]
        ids = np.flatnonzero(scores > 0)
        values = np.round(scores[ids], 6)  # sums of single-precision terms: their order of summation must not rank
        best = np.lexsort((ids, -values))[:top_k]
        return ids[best], values[best]


def _tokens(texts: Sequence[str]) -> Any:
    import bm25s
    import Stemmer

    return bm25s.tokenize(list(texts), stopwords="en", stemmer=Stemmer.Stemmer(LANGUAGE), show_progress=False)


def _words(texts: Sequence[str]) -> list[list[str]]:
    tokens = _tokens(texts)
    words = {number: word for word, number in tokens.vocab.items()}
    return [[words[number] for number in row] for row in tokens.ids]
