"""What an extractor makes: the entities and triples found in each chunk, and which chunks failed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_bench.graph.claims import ClaimRecord

Triple = tuple[str, str, str]
_SCHEMA = pa.schema(
    [("entities", pa.list_(pa.string())), ("triples", pa.list_(pa.list_(pa.string()))), ("failed", pa.string())]
)
_CLAIMS = pa.field("claims", pa.list_(pa.struct([(name, pa.string()) for name in ClaimRecord._fields])))
_RICH = pa.schema(
    [
        ("entities", pa.list_(pa.struct([(name, pa.string()) for name in ("name", "type", "description")]))),
        (
            "relations",
            pa.list_(
                pa.struct(
                    [
                        *((name, pa.string()) for name in ("source", "target", "name", "description")),
                        ("keywords", pa.list_(pa.string())),
                        ("strength", pa.float64()),
                    ]
                )
            ),
        ),
        ("failed", pa.string()),
    ]
)


@dataclass(frozen=True)
class Extraction:
    """Entities and triples by chunk, in the order of the chunks; ``failed`` maps a chunk to the reason it gave nothing."""

    entities: tuple[tuple[str, ...], ...]
    triples: tuple[tuple[Triple, ...], ...]
    failed: Mapping[int, str] = field(default_factory=dict)
    cut: int = 0  # chunks shortened to fit the model's window; recorded with the artifact's facts, not in its file

    def __len__(self) -> int:
        return len(self.entities)

    def statistics(self) -> dict[str, Any]:
        """Return counts: what the floors of a run look at."""
        chunks = len(self)
        kinds: dict[str, int] = {}
        for reason in self.failed.values():
            kind = reason.split(":")[0]
            kinds[kind] = kinds.get(kind, 0) + 1
        return {
            "chunks": chunks,
            "entities": sum(map(len, self.entities)),
            "triples": sum(map(len, self.triples)),
            "chunks_without_triple": sum(not row for row in self.triples),
            "failed": kinds,
            "cut": self.cut,
            "parse_rate": round(1 - len(self.failed) / chunks, 4) if chunks else 1.0,
        }

    def save(self, folder: Path) -> None:
        """Write the extraction into an existing folder."""
        table = pa.table(
            {
                "entities": [list(row) for row in self.entities],
                "triples": [[list(triple) for triple in row] for row in self.triples],
                "failed": [self.failed.get(number) for number in range(len(self))],
            },
            schema=_SCHEMA,
        )
        pq.write_table(table, folder / "extraction.parquet", compression="zstd")

    @classmethod
    def open(cls, folder: Path) -> "Extraction":
        """Open a saved extraction."""
        table = pq.read_table(folder / "extraction.parquet", memory_map=True)
        failed = {number: reason for number, reason in enumerate(table["failed"].to_pylist()) if reason is not None}
        return cls(
            tuple(tuple(row) for row in table["entities"].to_pylist()),
            tuple(tuple((t[0], t[1], t[2]) for t in row) for row in table["triples"].to_pylist()),
            failed,
        )


class EntityRecord(NamedTuple):
    """An entity as one chunk speaks of it."""

    name: str
    type: str = ""
    description: str = ""


class RelationRecord(NamedTuple):
    """A relation as one chunk states it. ``name`` is its predicate, where there is one; ``strength`` is 1 unless rated."""

    source: str
    target: str
    name: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    strength: float = 1.0


@dataclass(frozen=True)
class RichExtraction:
    """Described entities and relations by chunk, in the order of the chunks; ``failed`` as in `Extraction`.

    ``claims`` are those of each chunk; empty where none were looked for.
    """

    entities: tuple[tuple[EntityRecord, ...], ...]
    relations: tuple[tuple[RelationRecord, ...], ...]
    failed: Mapping[int, str] = field(default_factory=dict)
    cut: int = 0
    claims: tuple[tuple[ClaimRecord, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.entities)

    def plain(self) -> Extraction:
        """Return names and triples alone; a relation without a name is called by its description."""
        rows = [
            clean(
                [entity.name for entity in entities],
                [(r.source, r.name or r.description or "related to", r.target) for r in relations],
            )
            for entities, relations in zip(self.entities, self.relations, strict=True)
        ]
        return Extraction(tuple(r[0] for r in rows), tuple(r[1] for r in rows), self.failed, self.cut)

    @classmethod
    def of(cls, plain: Extraction) -> "RichExtraction":
        """Return names and triples as records without type or description."""
        relations = tuple(tuple(RelationRecord(s, o, name) for s, name, o in row) for row in plain.triples)
        entities = tuple(tuple(EntityRecord(name) for name in row) for row in plain.entities)
        return cls(entities, relations, plain.failed, plain.cut)

    def statistics(self) -> dict[str, Any]:
        """Return counts, as `Extraction.statistics` does; ``described`` counts the entities that have a description."""
        described = sum(bool(entity.description) for row in self.entities for entity in row)
        claims = {"claims": sum(map(len, self.claims))} if self.claims else {}
        return {**self.plain().statistics(), "described": described, **claims}

    def save(self, folder: Path) -> None:
        """Write the extraction into an existing folder."""
        table = pa.table(
            {
                "entities": [[entity._asdict() for entity in row] for row in self.entities],
                "relations": [[relation._asdict() for relation in row] for row in self.relations],
                "failed": [self.failed.get(number) for number in range(len(self))],
            },
            schema=_RICH,
        )
        if self.claims:
            rows = [[claim._asdict() for claim in row] for row in self.claims]
            table = table.append_column(_CLAIMS, pa.array(rows, _CLAIMS.type))
        pq.write_table(table, folder / "records.parquet", compression="zstd")

    @classmethod
    def open(cls, folder: Path) -> "RichExtraction":
        """Open a saved extraction."""
        table = pq.read_table(folder / "records.parquet", memory_map=True)
        failed = {number: reason for number, reason in enumerate(table["failed"].to_pylist()) if reason is not None}
        return cls(
            tuple(tuple(EntityRecord(**e) for e in row) for row in table["entities"].to_pylist()),
            tuple(
                tuple(RelationRecord(**{**r, "keywords": tuple(r["keywords"])}) for r in row)
                for row in table["relations"].to_pylist()
            ),
            failed,
            claims=tuple(tuple(ClaimRecord(**claim) for claim in row) for row in _column(table, "claims")),
        )


def _column(table: pa.Table, name: str) -> list[Any]:
    return list(table[name].to_pylist()) if name in table.column_names else []


def open_extraction(folder: Path) -> "Extraction | RichExtraction":
    """Open whichever kind of extraction lies in a folder."""
    return RichExtraction.open(folder) if (folder / "records.parquet").exists() else Extraction.open(folder)


def clean(entities: Any, triples: Any) -> tuple[tuple[str, ...], tuple[Triple, ...]]:
    """Return entities and triples stripped, without empty parts and repeats, in the order they came."""
    names = dict.fromkeys(name for entity in entities if (name := " ".join(str(entity).split())))
    rows: dict[Triple, None] = {}
    for triple in triples:
        parts = [" ".join(str(part).split()) for part in triple]
        if len(parts) == 3 and all(parts):
            rows[(parts[0], parts[1], parts[2])] = None
    return tuple(names), tuple(rows)


def dump_names(names: tuple[str, ...]) -> str:
    """Return names as a JSON list, the way a prompt shows them."""
    return json.dumps(list(names), ensure_ascii=False)
