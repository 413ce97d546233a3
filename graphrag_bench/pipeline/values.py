"""The values that flow between operators: ranked elements for a whole batch of questions, as ragged arrays.

Beside the rankings: `pipeline/walks.py` has what walks leave behind (paths, frontiers), `pipeline/texts.py` what is said
(questions, notes, yes or no). Every value can be cut down to some questions (`take`) and put together again (`placed`),
which is how loops leave finished questions alone.

A ranking holds, for each of the ``size`` questions of a batch, the ids of its elements best first (score descending, ties
by rising id). An operator that scores every element hands over the dense score matrix instead; it is sorted only when
somebody asks for an order, since the next operator is often one more sparse product.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Ids = NDArray[np.int64]
Scores = NDArray[np.float64]
Reasons = Mapping[int, str]
NONE_FAILED: Reasons = MappingProxyType({})


class Row(NamedTuple):
    """One question's elements, best first."""

    ids: Ids
    scores: Scores


def order(ids: Ids, scores: Scores) -> NDArray[np.intp]:
    """Return the permutation that sorts by score descending, then by id."""
    return np.lexsort((ids, -scores))


def place(size: int, parts: Sequence[tuple[Sequence[int], Any]], nothing: Any) -> tuple[list[Any], dict[int, str]]:
    """Return every question's row from the parts that speak of it (a later part wins), and their failures."""
    rows = [nothing] * size
    failed: dict[int, str] = {}
    for numbers, part in parts:
        for at, number in enumerate(numbers):
            rows[number] = part.row(at)
            failed.pop(number, None)
            if at in part.failed:
                failed[number] = part.failed[at]
    return rows, failed


class Ranking:
    """Ranked elements of one granularity for a batch: ``indptr`` (size + 1), ``ids`` and ``scores`` (total)."""

    def __init__(
        self,
        indptr: Ids | None = None,
        ids: Ids | None = None,
        scores: Scores | None = None,
        *,
        dense: Scores | None = None,
        failed: Reasons = NONE_FAILED,
    ) -> None:
        self._rows = None if indptr is None or ids is None or scores is None else (indptr, ids, scores)
        self._dense = dense
        self.failed = failed
        if self._rows is None and dense is None:
            raise ValueError("a ranking needs rows or a dense score matrix")

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, Any]], failed: Reasons = NONE_FAILED) -> Self:
        """Build from one (ids, scores) pair a question, in any order; an id given twice keeps its best score."""
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        all_ids: list[Ids] = []
        all_scores: list[Scores] = []
        for number, (raw_ids, raw_scores) in enumerate(rows):
            ids = np.asarray(raw_ids, dtype=np.int64)
            scores = np.asarray(raw_scores, dtype=np.float64)
            by_rank = order(ids, scores)
            ids, scores = ids[by_rank], scores[by_rank]
            _, first = np.unique(ids, return_index=True)
            if len(first) < len(ids):
                first.sort()
                ids, scores = ids[first], scores[first]
            all_ids.append(ids)
            all_scores.append(scores)
            indptr[number + 1] = indptr[number] + len(ids)
        empty_ids, empty_scores = np.empty(0, np.int64), np.empty(0, np.float64)
        return cls(
            indptr, np.concatenate([empty_ids, *all_ids]), np.concatenate([empty_scores, *all_scores]), failed=failed
        )

    @classmethod
    def of_dense(cls, scores: Scores, top_k: int | None = None, failed: Reasons = NONE_FAILED) -> Self:
        """Build from a (size, n) matrix in which a score of 0 means absent; keep the ``top_k`` best if given."""
        whole = cls(dense=scores, failed=failed)
        return whole if top_k is None else whole.top(top_k)

    @classmethod
    def of_csr(cls, scores: sparse.csr_array, top_k: int | None = None, failed: Reasons = NONE_FAILED) -> Self:
        """Build from a sparse (size, n) matrix in which a score of 0 means absent; keep the ``top_k`` best if given."""
        scores.sum_duplicates()
        parts = [slice(int(start), int(end)) for start, end in pairwise(scores.indptr)]
        rows = []
        for indices, values in ((scores.indices[part], scores.data[part]) for part in parts):
            # the indices rise, so the smaller place among equals is the smaller id
            at, kept = _best(values, len(values) if top_k is None else top_k)
            by_rank = order(at, kept)
            rows.append(Row(indices[at[by_rank]].astype(np.int64), kept[by_rank].astype(np.float64)))
        rows.insert(0, Row(np.empty(0, np.int64), np.empty(0)))
        indptr = np.cumsum([len(row.ids) for row in rows]).astype(np.int64)
        return cls(
            indptr,
            np.concatenate([row.ids for row in rows]),
            np.concatenate([row.scores for row in rows]),
            failed=failed,
        )

    def take(self, rows: Sequence[int]) -> Self:
        """Return the ranking of some questions only, in the given order."""
        failed = {at: self.failed[row] for at, row in enumerate(rows) if row in self.failed}
        if self._rows is None:
            return type(self)(dense=self.dense_or_fail()[list(rows)], failed=failed)
        return type(self).of_rows([self.row(row) for row in rows], failed)

    @classmethod
    def placed(cls, size: int, parts: Sequence[tuple[Sequence[int], Self]]) -> Self:
        """Build a ranking for ``size`` questions from parts, each with the rows it speaks of; a later part wins."""
        return cls.of_rows(*place(size, parts, Row(np.empty(0, np.int64), np.empty(0))))

    @classmethod
    def empty(cls, size: int, failed: Reasons = NONE_FAILED) -> Self:
        """Build a ranking without elements for ``size`` questions."""
        return cls(np.zeros(size + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.float64), failed=failed)

    @property
    def size(self) -> int:
        """How many questions the batch has."""
        return len(self._rows[0]) - 1 if self._rows is not None else len(self.dense_or_fail())

    def __len__(self) -> int:
        return self.size

    def dense_or_fail(self) -> Scores:
        """Return the dense matrix this ranking was made of."""
        if self._dense is None:
            raise ValueError("this ranking was not made from a dense matrix")
        return self._dense

    def _sorted(self) -> tuple[Ids, Ids, Scores]:
        if self._rows is None:
            rows = []
            for scores in self.dense_or_fail():
                ids = np.flatnonzero(scores)
                # flatnonzero yields rising ids, so a stable sort by score alone breaks ties by id
                ids = ids[np.argsort(-scores[ids], kind="stable")]
                rows.append((ids, scores[ids]))
            indptr = np.concatenate([[0], np.cumsum([len(ids) for ids, _ in rows])]).astype(np.int64)
            ids = np.concatenate([np.empty(0, np.int64), *(r[0] for r in rows)])
            values = np.concatenate([np.empty(0, np.float64), *(r[1] for r in rows)])
            self._rows = (indptr, ids, values)
        return self._rows

    @property
    def indptr(self) -> Ids:
        """Where each question's elements begin, length size + 1."""
        return self._sorted()[0]

    @property
    def ids(self) -> Ids:
        """All ids, question after question, best first."""
        return self._sorted()[1]

    @property
    def scores(self) -> Scores:
        """The scores that belong to ``ids``."""
        return self._sorted()[2]

    def row(self, question: int) -> Row:
        """Return one question's elements."""
        indptr, ids, scores = self._sorted()
        part = slice(int(indptr[question]), int(indptr[question + 1]))
        return Row(ids[part], scores[part])

    def __iter__(self) -> Iterator[Row]:
        return (self.row(number) for number in range(self.size))

    def dense(self, n: int) -> Scores:
        """Return the scores as a (size, n) matrix with 0 for what is absent."""
        if self._dense is not None:
            return self._dense
        indptr, ids, scores = self._sorted()
        out = np.zeros((self.size, n), dtype=np.float64)
        out[np.repeat(np.arange(self.size), np.diff(indptr)), ids] = scores
        return out

    def csr(self, n: int) -> sparse.csr_array:
        """Return the scores as a sparse (size, n) matrix, columns rising; a 0 that was given stays stored."""
        if self._rows is None:
            return sparse.csr_array(self.dense_or_fail())
        indptr, ids, scores = self._rows
        # products want both sides' indices of one width, and the incidences have the narrow one where it is enough
        narrow = np.int32 if max(n, len(ids)) < np.iinfo(np.int32).max else np.int64
        matrix = sparse.csr_array((scores.copy(), ids.astype(narrow), indptr.astype(narrow)), shape=(self.size, n))
        matrix.sort_indices()
        return matrix

    def top(self, k: int) -> Self:
        """Keep the ``k`` best of each question."""
        if self._rows is None:
            return type(self).of_rows([_best(scores, k) for scores in self.dense_or_fail()], self.failed)
        kept = [(row.ids[:k], row.scores[:k]) for row in self]
        return type(self).of_rows(kept, self.failed)

    @classmethod
    def join(cls, values: Sequence["Ranking"], rule: Literal["max", "sum"] = "max") -> Self:
        """Unite several rankings of one batch; an element in several keeps its best score or their sum."""
        failed = {number: reason for value in values for number, reason in value.failed.items()}
        rows = []
        for number in range(values[0].size):
            parts = [value.row(number) for value in values]
            ids, where = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
            scores = np.concatenate([part.scores for part in parts])
            joined = np.full(len(ids), -np.inf) if rule == "max" else np.zeros(len(ids))
            (np.maximum if rule == "max" else np.add).at(joined, where, scores)
            rows.append((ids, joined))
        return cls.of_rows(rows, failed)


def _best(scores: Scores, k: int) -> tuple[Ids, Scores]:
    """Return the k best nonzero entries; among equals at the cut the smaller ids stay."""
    ids = np.flatnonzero(scores)
    if len(ids) > k > 0:
        values = scores[ids]
        cut = np.partition(values, len(values) - k)[len(values) - k]
        above = ids[values > cut]
        ids = np.concatenate([above, ids[values == cut][: k - len(above)]])
    elif k <= 0:
        ids = ids[:0]
    return ids, scores[ids]


class Nodes(Ranking):
    """Ranked nodes."""


class Relationships(Ranking):
    """Ranked relationships."""


class Chunks(Ranking):
    """Ranked chunks."""


class Communities(Ranking):
    """Ranked communities."""
