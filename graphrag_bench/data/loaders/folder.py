"""A folder in the project's neutral layout: the way to bring your own data."""

from pathlib import Path

from graphrag_bench.data.build import make_dataset
from graphrag_bench.data.card import read_card
from graphrag_bench.data.neutral import existing_folder, read_folder
from graphrag_bench.data.types import Dataset
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("dataset", "folder")
def folder(*, path: str, name: str | None = None, questions: str | None = None) -> Dataset:
    """Load corpus, questions, OpenIE and question entities from a folder of JSON lines files.

    Args:
        path: The folder; only ``corpus.jsonl`` (or ``.gz``) must be in it. A ``card.yaml`` in it is the dataset's card.
        name: The dataset's name; the folder's name where it is not given.
        questions: Another file of questions, in the place of the folder's ``questions.jsonl``.

    Raises:
        UserError: A file is missing or faulty; it names file and line.
    """
    place = existing_folder(path)
    asked = Path(questions).expanduser() if questions is not None else None
    if asked is not None and not asked.is_file():
        raise UserError(f"There is no file of questions at {asked}.", "Correct dataset.questions.")
    parts = read_folder(place, asked)
    known = name or place.resolve().name
    card = read_card(place / "card.yaml", known) if (place / "card.yaml").is_file() else None
    return make_dataset(
        known, parts.documents, parts.questions, parts.gold, triples=parts.triples,
        question_entities=parts.question_entities, card=card, notes=parts.notes, extra=parts.extra,
    )
