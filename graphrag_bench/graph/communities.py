"""Communities of a graph: the hierarchy of who is in which, and a report on each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.store.arrays import load_arrays, pack, save_arrays, unpack

Incidence = sparse.csr_array
REPORT_SCHEMA = pa.schema(
    [
        ("title", pa.string()),
        ("summary", pa.string()),
        ("text", pa.string()),  # the whole report, as a prompt shows it
        ("rating", pa.float64()),  # 0 to 10; null where the report has none
        ("rating_reason", pa.string()),
        ("failed", pa.string()),  # null, or why there is no report
    ]
)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Communities by level, the coarsest first.

    Attributes:
        level: (communities,) how far each stands below the coarsest: 0 for the roots (GraphRAG's C0).
        parent: (communities,) the community of the level above that holds it, -1 for a root.
        members: (communities, nodes) 1 where the node is in the community; a community holds its children's nodes too.
    """

    level: NDArray[np.int32]
    parent: NDArray[np.int32]
    members: Incidence

    def __len__(self) -> int:
        return len(self.level)

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Mark the communities that have no community below them."""
        leaf = np.ones(len(self), dtype=bool)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    def children(self, community: int) -> NDArray[np.int64]:
        """Return the communities right below one."""
        by_parent, parents = self._by_parent
        first, last = np.searchsorted(parents, (community, community + 1))
        return by_parent[first:last]

    @cached_property
    def _by_parent(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The communities by parent, those of one by rising id, and their parents."""
        by_parent = np.argsort(self.parent, kind="stable").astype(np.int64)
        return by_parent, self.parent[by_parent]

    def nodes(self, community: int) -> NDArray[np.int64]:
        """Return the nodes of a community, by rising id."""
        start, end = self.members.indptr[community], self.members.indptr[community + 1]
        return np.asarray(self.members.indices[start:end], dtype=np.int64)

    def at(self, level: int) -> NDArray[np.int64]:
        """Return the communities that cover the graph at a level: those of it, and leaves above that were not divided."""
        return np.flatnonzero((self.level == level) | ((self.level < level) & self.is_leaf))

    def statistics(self) -> dict[str, Any]:
        """Return how many communities there are at each level, and how large."""
        sizes = np.diff(self.members.indptr)
        covered = np.asarray(self.members.sum(axis=0)).ravel() > 0 if len(self) else np.zeros(self.members.shape[1], bool)
        return {
            "communities": len(self),
            "by_level": {str(level): int(count) for level, count in enumerate(np.bincount(self.level))},
            "largest": int(sizes.max()) if len(self) else 0,
            "median_size": float(np.median(sizes)) if len(self) else 0.0,
            "nodes_without_community": int((~covered).sum()),
        }

    def save(self, folder: Path) -> None:
        """Write the hierarchy into an existing folder."""
        arrays = {"level": self.level, "parent": self.parent, **pack("members", self.members)}
        save_arrays(folder / "hierarchy.npz", arrays)

    @classmethod
    def open(cls, folder: Path) -> "Hierarchy":
        """Open a saved hierarchy, memory-mapped."""
        arrays = load_arrays(folder / "hierarchy.npz")
        return cls(arrays["level"], arrays["parent"], unpack("members", arrays))


@dataclass(frozen=True, eq=False)
class Reports:
    """A report a community, in the order of the hierarchy: a table with REPORT_SCHEMA."""

    table: pa.Table
    cut: int = 0  # communities whose elements did not all fit the model's window; a fact of the artifact, not of its file

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self) -> list[dict[str, Any]]:
        """Return the reports one by one, as `ReportRows.add` takes them."""
        return list(self.table.to_pylist())

    @cached_property
    def ratings(self) -> NDArray[np.float64]:
        """The ratings, NaN where a report has none."""
        return np.array([np.nan if r is None else r for r in self.table["rating"].to_pylist()], dtype=np.float64)

    @cached_property
    def failed(self) -> Mapping[int, str]:
        """Why a community has no report."""
        return {n: reason for n, reason in enumerate(self.table["failed"].to_pylist()) if reason is not None}

    def statistics(self) -> dict[str, Any]:
        """Return counts: what the floors of a run look at."""
        kinds: dict[str, int] = {}
        for reason in self.failed.values():
            kind = reason.split(":")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
        share = 1 - len(self.failed) / len(self) if len(self) else 1.0
        unrated = int(np.isnan(self.ratings).sum()) - len(self.failed)
        return {
            "reports": len(self), "failed": kinds, "without_rating": max(unrated, 0), "cut": self.cut,
            "parse_rate": round(share, 4),
        }

    def save(self, folder: Path) -> None:
        """Write the reports into an existing folder."""
        pq.write_table(self.table.cast(REPORT_SCHEMA), folder / "reports.parquet", compression="zstd")

    @classmethod
    def open(cls, folder: Path) -> "Reports":
        """Open saved reports."""
        return cls(pq.read_table(folder / "reports.parquet", memory_map=True))


@dataclass
class ReportRows:
    """Collects reports, one community after the other."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in REPORT_SCHEMA.names})

    def add(
        self,
        title: str = "",
        summary: str = "",
        text: str = "",
        *,
        rating: float | None = None,
        rating_reason: str = "",
        failed: str | None = None,
    ) -> None:
        """Append one community's report, or why there is none."""
        values = (title, summary, text, rating, rating_reason, failed)
        for name, value in zip(REPORT_SCHEMA.names, values, strict=True):
            self.columns[name].append(value)

    def reports(self, cut: int = 0) -> Reports:
        """Return what was collected."""
        return Reports(pa.table(self.columns, schema=REPORT_SCHEMA), cut)
