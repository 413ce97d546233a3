"""The neutral layout: a folder of JSON lines files, read into the parts of a dataset.

``corpus`` (id, title?, text) must be there; ``questions`` (id, question, answers?, gold_passages?, type?), ``openie``
(passage_id, entities?, triples?) and ``query_entities`` (question_id, entities) may be. Each is ``.jsonl`` or
``.jsonl.gz``. A ``description.md`` says in prose what the corpus is about.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_bench.data.build import EntityRow, GoldRow
from graphrag_bench.data.reading import FaultList, Located, Row, read_lines, read_records
from graphrag_bench.data.types import Document, GivenTriples, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.store.faults import user_path


@dataclass
class Parts:
    """What a folder holds, before it is checked and put together."""

    documents: list[Located[Document]]
    questions: list[Located[Question]] = field(default_factory=list)
    gold: list[GoldRow] = field(default_factory=list)
    triples: list[Located[GivenTriples]] | None = None
    question_entities: list[EntityRow] | None = None
    notes: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


def existing_folder(path: str) -> Path:
    """Return the folder of this path.

    Raises:
        UserError: There is no such folder.
    """
    folder = user_path(path)
    if not folder.exists():
        raise UserError(f"The folder {folder} does not exist.", "Check the dataset's `path`.")
    if not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder.", "Give the folder that holds the files of the dataset.")
    return folder


def find_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name, plain or with ``.gz``, or None; two of them are a fault."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
    if len(found) == 2:
        raise UserError(f"{folder} holds both {name} and {name}.gz.", "Keep one of them.")
    return found[0] if found else None


def need_file(folder: Path, name: str, what: str) -> Path:
    """Like ``find_file``, but an absent file is a fault."""
    path = find_file(folder, name)
    if path is None:
        raise UserError(f"The folder {folder} has no {what}.", f"It should hold {name} or {name}.gz.")
    return path


def read_folder(folder: Path, questions: Path | None = None) -> Parts:
    """Read a folder of the neutral layout.

    Raises:
        UserError: A file is missing or faulty.
    """
    corpus = need_file(folder, "corpus.jsonl", "corpus")
    kept: dict[str, dict[str, Any]] = {}

    def document(row: Row) -> Document:
        found = Document(row.text("id"), row.text("title", default=""), row.text("text"))
        keep(kept, found.id, row.others("id", "title", "text"))
        return found

    parts = Parts(read_records(corpus, document))
    if kept:
        parts.extra["documents"] = kept
    if path := questions or find_file(folder, "questions.jsonl"):
        _questions(path, parts)
    if path := find_file(folder, "openie.jsonl"):
        parts.triples = _openie(path, parts)
    if path := find_file(folder, "query_entities.jsonl"):
        parts.question_entities = read_records(
            path, lambda row: (row.text("question_id"), tuple(e for e in row.texts("entities") if e.strip()))
        )
    if path := find_file(folder, "description.md"):
        faults = FaultList(str(path))
        parts.extra["description"] = "".join(line for _, line in read_lines(path, faults)).strip()
        faults.settle()
    return parts


def keep(store: dict[str, dict[str, Any]], identifier: str, fields: dict[str, Any]) -> None:
    """Put the source's further fields of one item aside, where there are any."""
    if fields:
        store[identifier] = fields


def sound_triples(
    entities: list[Any], triples: list[Any]
) -> tuple[tuple[str, ...], tuple[tuple[str, str, str], ...], int]:
    """Return the entities and triples that are usable, and how many extracted items were not.

    A triple is three texts that are not blank; anything else an extractor wrote is malformed and never counted as one.
    """
    names = tuple(entity for entity in entities if isinstance(entity, str) and entity.strip())
    good = tuple(
        (t[0], t[1], t[2])
        for t in triples
        if isinstance(t, list) and len(t) == 3 and all(isinstance(part, str) and part.strip() for part in t)
    )
    return names, good, len(entities) - len(names) + len(triples) - len(good)


def malformed_note(count: int) -> list[str]:
    """Return the note about set-aside extractions, if there are any."""
    return [f"{count:,} malformed entities or triples of the given OpenIE were set aside."] if count else []


def _questions(path: Path, parts: Parts) -> None:
    kept: dict[str, dict[str, Any]] = {}

    def question(row: Row) -> tuple[Question, Gold]:
        found = Question(row.text("id"), row.text("question"), row.text("type", default=""))
        keep(kept, found.id, row.others("id", "question", "type", "answers", "gold_passages"))
        return found, Gold(row.texts("answers"), row.texts("gold_passages"))

    rows = read_records(path, question)
    parts.questions = [Located(row.value[0], row.place) for row in rows]
    parts.gold = [Located((row.value[0].id, row.value[1]), row.place) for row in rows]
    if kept:
        parts.extra["questions"] = kept


def _openie(path: Path, parts: Parts) -> list[Located[GivenTriples]]:
    malformed = 0

    def given(row: Row) -> GivenTriples:
        nonlocal malformed
        entities, triples, bad = sound_triples(row.items("entities"), row.items("triples"))
        malformed += bad + len(row.items("malformed_triples"))
        return GivenTriples(row.text("passage_id"), entities, triples)

    rows = read_records(path, given)
    parts.notes.extend(malformed_note(malformed))
    return rows
