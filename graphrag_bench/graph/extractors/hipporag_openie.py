"""Extraction read from an OpenIE file of HippoRAG: the entities and triples its model found, passage by passage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.data.neutral import sound_triples
from graphrag_bench.data.reading import Row, read_array
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import Extraction, Triple, clean
from graphrag_bench.graph.importing import existing, files_digest
from graphrag_bench.graph.tables import identifier
from graphrag_bench.graph.units import TextUnits
from graphrag_bench.registry import register


@dataclass(frozen=True)
class ImportedExtraction(Extraction):
    """An extraction read from a file; ``account`` counts what was read and what was left out."""

    account: Mapping[str, int] = field(default_factory=dict)

    def statistics(self) -> dict[str, Any]:
        """Return the extraction's counts, with the account under ``import``."""
        return {**super().statistics(), "import": dict(self.account)}


def _file(path: str) -> Path:
    file = existing(path, "graph.path")
    if not file.is_file():
        raise UserError(f"{file} is a folder.", "Give the openie_results_….json file itself.")
    return file


def _inputs(settings: Mapping[str, Any]) -> str:
    return files_digest([_file(str(settings["path"]))])


@register("extractor", "hipporag_openie", inputs=_inputs)
def read(chunks: ChunkTable, *, path: str) -> Extraction:
    """Give each chunk the entities and triples that HippoRAG's file holds for its passage.

    A passage (a title's line and a text) is a chunk by its text, or a document by its ``idx``. Where a passage lies in
    several chunks, a triple goes to those that hold its subject or object, and to the first where none does.

    Args:
        chunks: the corpus.
        path: the file, {docs: [{idx, passage, extracted_entities, extracted_triples}]}.

    Raises:
        UserError: The file is missing or faulty, or none of its passages is one of the chunks.
    """
    file = _file(path)
    rows = [row.value for row in read_array(file, _row, key="docs")]
    units = TextUnits(chunks, {f"{number} {unit}": text for number, (unit, text, *_) in enumerate(rows)})
    by_id = TextUnits(chunks, {})
    entities: list[list[str]] = [[] for _ in chunks]
    triples: list[list[Triple]] = [[] for _ in chunks]
    given: set[int] = set()
    malformed = unmatched = 0
    for number, (unit, _, names, facts, bad) in enumerate(rows):
        found, key = units, f"{number} {unit}"
        if not found.chunks(key):
            found, key = by_id, unit
        given.update(found.chunks(key))
        unmatched += not found.chunks(key)
        malformed += bad
        for name in names:
            for chunk in found.chunks(key, name):
                entities[chunk].append(name)
        for triple in facts:
            for chunk in found.chunks(key, triple[0], triple[2]):
                triples[chunk].append(triple)
    if unmatched == len(rows):
        raise UserError(
            f"None of the {len(rows):,} passages of {file} is one of the chunks.",
            "Take the OpenIE file that belongs to this corpus.",
        )
    cleaned = [clean(names, facts) for names, facts in zip(entities, triples, strict=True)]
    absent = {c.id: "missing: the OpenIE file has no such passage" for c in chunks if c.id not in given}
    account = {"passages": len(rows), "passages_without_chunk": unmatched, "malformed": malformed}
    return ImportedExtraction(
        tuple(row[0] for row in cleaned), tuple(row[1] for row in cleaned), absent, account=account
    )


def _row(row: Row) -> tuple[str, str, tuple[str, ...], tuple[Triple, ...], int]:
    names, facts, bad = sound_triples(row.items("extracted_entities"), row.items("extracted_triples"))
    return identifier(row, "idx"), row.text("passage", default=""), names, facts, bad
