"""Documents, questions and gold. Questions never hold an answer; gold is what only scorers see."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Document:
    """One passage or document of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question, without its answer."""

    id: str
    text: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Gold:
    """What a scorer compares with. Empty tuples where the dataset has none."""

    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()  # document ids


@dataclass(frozen=True, slots=True)
class GivenTriples:
    """Entities and triples that came with the dataset for one document."""

    document: str
    entities: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


GivenOpenIE: TypeAlias = tuple[GivenTriples, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """Where a dataset comes from and what it should hold; a loaded dataset is compared with it."""

    name: str
    source: str = ""
    licence: str = ""
    split: str = ""
    description: str = ""
    documents: int | None = None  # expected counts; None = not stated
    questions: int | None = None
    sha256: str = ""  # expected content hash; "" = not stated


@dataclass(frozen=True)
class Dataset:
    """A corpus with its questions. ``gold`` is kept apart so that pipelines cannot read it."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    gold: Mapping[str, Gold]
    sha256: str  # of the canonical content of documents and questions (not of file bytes)
    card: Card
    triples: tuple[GivenTriples, ...] | None = None
    question_entities: Mapping[str, tuple[str, ...]] | None = None
    notes: tuple[str, ...] = field(default=())  # what was odd but harmless, for the run to say
    extra: Mapping[str, Any] = field(default_factory=dict)
