"""Engines of vector search: what finds candidates among many vectors, so that not every one need be scored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.errors import UserError
from graphrag_bench.store.arrays import load_arrays, save_arrays

_GROUPS = "groups.npz"


class Engine(Protocol):
    """Finds vectors that are likely among the nearest by inner product; whoever asks scores them exactly."""

    def candidates(self, vectors: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return for each query vector the ids of up to ``k`` near vectors: (queries, k), the rest of a row -1."""
        ...


@runtime_checkable
class Backend(Protocol):
    """A registered component of kind ``index``: makes an engine's files, and opens them.

    Attributes:
        approximate: whether there is an engine at all; without one every vector is scored (``open`` gives None).
    """

    approximate: bool

    def build(self, matrix: NDArray[np.float32], folder: Path) -> Mapping[str, Any]:
        """Write the engine of these vectors (one a row) into an existing folder; return facts for its manifest."""
        ...

    def open(self, folder: Path) -> Engine | None:
        """Open an engine that ``build`` wrote."""
        ...


class LayeredEngine(Protocol):
    """Finds vectors that are likely among the nearest in every layer of a hierarchy."""

    def candidates(self, vectors: NDArray[np.float32], k: int) -> list[NDArray[np.int64]]:
        """Return for each layer what an `Engine` returns: (queries, k) rows of the layer, padded with -1."""
        ...


@runtime_checkable
class LayeredBackend(Protocol):
    """A backend with an engine of its own for a hierarchy; the others get one engine a layer."""

    def build_layers(self, layers: Sequence[NDArray[np.float32]], folder: Path) -> Mapping[str, Any]:
        """Write the engine of a hierarchy (a matrix a layer, the lowest first) into an existing folder; return facts."""
        ...

    def open_layers(self, folder: Path) -> LayeredEngine:
        """Open an engine that ``build_layers`` wrote."""
        ...


class DistinctRows:
    """The rows of a matrix without their repeats, and which rows each of them stands for.

    Equal vectors (two nodes of one name) would crowd a proximity graph, and an engine gives them in no order; indexed
    once, they come back together and by rising id, as exact search has them.
    """

    def __init__(self, indptr: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        self.indptr = indptr
        self.ids = ids

    @classmethod
    def of(cls, matrix: NDArray[np.float32]) -> "DistinctRows":
        """Group the equal rows; a group's first row is its representative, and groups stand by their first row."""
        if not len(matrix):
            return cls(np.zeros(1, np.int64), np.empty(0, np.int64))
        rows = np.ascontiguousarray(matrix) + np.float32(0)  # -0 is 0
        as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, first, group = np.unique(as_bytes, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        group = rank[group.ravel()]
        ids = np.argsort(group, kind="stable").astype(np.int64)
        return cls(np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64), ids)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def representatives(self) -> NDArray[np.int64]:
        """The first row of each group."""
        return self.ids[self.indptr[:-1]]

    def expand(self, groups: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return the rows that rows of group numbers (-1: none) stand for, in their order, the first ``k`` of each."""
        out = np.full((len(groups), k), -1, np.int64)
        if len(self) == len(self.ids):  # no row is repeated
            groups = groups[:, :k]
            out[:, : groups.shape[1]] = np.where(groups >= 0, self.ids[groups], -1)
            return out
        for number, row in enumerate(groups):
            place = 0
            for group in row[row >= 0]:
                found = self.ids[self.indptr[group] : self.indptr[group + 1]][: k - place]
                out[number, place : place + len(found)] = found
                place += len(found)
                if place == k:
                    break
        return out

    def save(self, folder: Path) -> None:
        """Write the groups into an existing folder."""
        save_arrays(folder / _GROUPS, {"indptr": self.indptr, "ids": self.ids})

    @classmethod
    def open(cls, folder: Path) -> "DistinctRows":
        """Open saved groups."""
        arrays = load_arrays(folder / _GROUPS)
        return cls(arrays["indptr"], arrays["ids"])


def at_least(component: str, least: Mapping[str, tuple[int | None, int]]) -> None:
    """Raise UserError for the first setting (name: its value and the least it may be) that is too small."""
    for name, (value, low) in least.items():
        if value is not None and value < low:
            raise UserError(f"index.{name} of {component} is {value}.", f"Write index.{name}={low} or more.")


def missing_library(component: str, library: str) -> UserError:
    """Return what to raise where a backend's library is not installed."""
    return UserError(
        f"index.backend={component} needs the library {library}, which is not installed.",
        "Run: pip install 'graphrag-bench[ann]'; or use index=exact.",
    )
