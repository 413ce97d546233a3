"""TF-IDF over the texts of a graph's nodes (KGP): sparse counts, with the inverse document frequencies of any candidate set.

The weighting is scikit-learn's TfidfVectorizer with its defaults: words of two or more letters or digits in lower case,
raw counts times idf(t) = ln((1 + n) / (1 + df(t))) + 1, rows of Euclidean length 1. Counts are kept, not weights, so that the
idf can be fitted on the candidates of a question alone, as KGP's authors do, without reading a text again.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.store.arrays import load_arrays, pack, save_arrays, unpack

Fit = Literal["candidates", "corpus"]
Hits = tuple[NDArray[np.int64], NDArray[np.float64]]

_WORD = re.compile(r"(?u)\b\w\w+\b")
_DECIMALS = 9  # below: what the order of summation leaves, which must not rank
_NOTHING: Hits = (np.empty(0, np.int64), np.empty(0))


class TfidfIndex:
    """Word counts of texts, searched by TF-IDF cosine."""

    def __init__(self, counts: sparse.csr_array, terms: Sequence[str]) -> None:
        """Make an index of counts, (texts, terms) with sorted columns, and the terms in rising order."""
        self.counts = counts
        self.terms = terms

    @classmethod
    def build(cls, texts: Sequence[str], folder: Path, *, stop_words: bool = False) -> "TfidfIndex":
        """Count the words of the texts and write the counts into an existing folder.

        Args:
            texts: one a node, by id.
            folder: where the index is kept.
            stop_words: leave out English function words (scikit-learn's list).
        """
        left_out = _stop_words() if stop_words else frozenset()
        rows = [[word for word in _WORD.findall(text.lower()) if word not in left_out] for text in texts]
        terms = sorted({word for row in rows for word in row})
        where = {word: at for at, word in enumerate(terms)}
        columns = np.fromiter((where[word] for row in rows for word in row), np.int64)
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        counts = sparse.coo_array(
            (np.ones(len(columns), np.float32), (np.repeat(np.arange(len(rows)), lengths), columns)),
            shape=(len(rows), len(terms)),
        ).tocsr()
        counts.sum_duplicates()
        save_arrays(folder / "counts.npz", pack("counts", counts))
        (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
        return cls(counts, terms)

    @classmethod
    def open(cls, folder: Path) -> "TfidfIndex":
        """Open a saved index, memory-mapped."""
        written = (folder / "terms.txt").read_text("utf-8")
        return cls(unpack("counts", load_arrays(folder / "counts.npz")), written.split("\n") if written else [])

    @property
    def size(self) -> int:
        """How many texts."""
        return int(self.counts.shape[0])

    def search(
        self,
        texts: Sequence[str],
        top_k: int,
        within: Sequence[NDArray[np.int64]] | None = None,
        fit: Fit = "corpus",
    ) -> list[Hits]:
        """Return for each text the ids and cosines of its ``top_k`` best, best first, ties by rising id.

        Only what shares a word with the text is a hit.

        Args:
            texts: what to look for.
            top_k: hits a text at most.
            within: for each text the ids to look among; all if not given.
            fit: whether the idf is that of the ids looked among, or that of the whole corpus.
        """
        queries = self._queries(texts)
        if within is None:
            idf, lengths = self._corpus
            found = self._weighted(queries, idf) @ self._postings
            return [self._best(found[[row]], np.arange(self.size), lengths, top_k) for row in range(len(texts))]
        return [self._among(queries[[row]], np.unique(ids), top_k, fit) for row, ids in enumerate(within)]

    def _queries(self, texts: Sequence[str]) -> sparse.csr_array:
        cells = [
            (row, at)
            for row, text in enumerate(texts)
            for word in _WORD.findall(text.lower())
            if (at := self._where.get(word)) is not None
        ]
        rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
        queries = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts), len(self.terms))).tocsr()
        queries.sum_duplicates()
        return queries

    def _among(self, query: sparse.csr_array, ids: NDArray[np.int64], top_k: int, fit: Fit) -> Hits:
        if not len(ids) or not query.nnz:
            return _NOTHING
        counts = self.counts[ids]
        if fit == "corpus":
            idf, lengths = self._corpus[0], self._corpus[1][ids]
        else:
            idf = _idf(counts)
            lengths = _lengths(counts, idf)
        found = (counts @ self._weighted(query, idf).T.tocsr()).T.tocsr()
        return self._best(found, ids, lengths, top_k)

    def _weighted(self, queries: sparse.csr_array, idf: NDArray[np.float64]) -> sparse.csr_array:
        """Return the queries times idf² (theirs and the texts'), over their own length; an unknown word has idf 0."""
        lengths = _lengths(queries, idf)
        weighted = queries.copy()
        weighted.data *= (idf**2)[queries.indices] * np.repeat(_inverse(lengths), np.diff(queries.indptr))
        return weighted

    def _best(self, found: sparse.csr_array, ids: NDArray[np.int64], lengths: NDArray[np.float64], top_k: int) -> Hits:
        columns = found.indices
        cosines = np.round(found.data * _inverse(lengths)[columns], _DECIMALS)
        hit = cosines > 0
        chosen, cosines = ids[columns[hit]], cosines[hit]
        best = np.lexsort((chosen, -cosines))[:top_k]
        return chosen[best], cosines[best]

    @cached_property
    def _where(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.terms)}

    @cached_property
    def _postings(self) -> sparse.csr_array:
        return sparse.csr_array(self.counts.T.tocsr())

    @cached_property
    def _corpus(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        idf = _idf(self.counts)
        return idf, _lengths(self.counts, idf)


def _idf(counts: sparse.csr_array) -> NDArray[np.float64]:
    """Return the smoothed idf of each term, 0 for one that occurs nowhere."""
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.where(frequency > 0, np.log((1.0 + counts.shape[0]) / (1.0 + frequency)) + 1.0, 0.0)


def _lengths(counts: sparse.csr_array, idf: NDArray[np.float64]) -> NDArray[np.float64]:
    squared = counts.astype(np.float64)
    squared.data **= 2
    lengths: NDArray[np.float64] = np.sqrt(squared @ idf**2)
    return lengths


def _inverse(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)
