"""What every loader ends with: the cross checks, the notes, the content hash and the comparison with the card."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from graphrag_bench.data.card import differences, known_card
from graphrag_bench.data.reading import FaultList, Located
from graphrag_bench.data.types import Card, Dataset, Document, GivenTriples, Gold, Question

T = TypeVar("T")
GoldRow = Located[tuple[str, Gold]]
EntityRow = Located[tuple[str, tuple[str, ...]]]


def make_dataset(
    name: str,
    documents: Sequence[Located[Document]],
    questions: Sequence[Located[Question]] = (),
    gold: Iterable[GoldRow] = (),
    *,
    triples: Sequence[Located[GivenTriples]] | None = None,
    question_entities: Sequence[EntityRow] | None = None,
    card: Card | None = None,
    notes: Iterable[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> Dataset:
    """Check the parts of a dataset against each other and put them together.

    Args:
        name: The dataset's name; a card that ships under it is used where ``card`` is not given.
        documents: The corpus, in its order.
        questions: The questions, in their order.
        gold: Question ids with answers and gold passages; several rows of one question are joined.
        triples: Given entities and triples, at most one row a document.
        question_entities: Question ids with given entities, at most one row a question.
        card: What the dataset should hold.
        notes: Oddities the loader met.
        extra: Whatever else the source holds; not part of the content hash.

    Raises:
        UserError: An empty text, a repeated id, or a reference to an unknown document or question; ``Faults`` where
            there are several. Each names file and line.
    """
    faults = FaultList(f"dataset {name}")
    if not documents:
        faults.add(f"Dataset {name} has no documents.", "A corpus needs at least one.")
    texts = _unique(documents, lambda d: d.id, "document", faults)
    asked = _unique(questions, lambda q: q.id, "question", faults)
    for document in documents:
        _not_blank(document.value.text, f'the text of document "{document.value.id}"', document.place, faults)
    for question in questions:
        _not_blank(question.value.text, f'question "{question.value.id}"', question.place, faults)
    faults.settle()  # references to what these checks refused would only add noise
    joined: dict[str, Gold] = {}
    for row in gold:
        identifier, given = row.value
        _known(identifier, asked, "gold is given for question", row.place, faults)
        for passage in given.passages:
            _known(passage, texts, f'question "{identifier}" has the gold passage', row.place, faults, "the corpus")
        for answer in given.answers:
            _not_blank(answer, f'an answer of question "{identifier}"', row.place, faults)
        before = joined.get(identifier, Gold())
        joined[identifier] = Gold(_once(before.answers + given.answers), _once(before.passages + given.passages))
    if triples is not None:
        for identifier, place in _unique(triples, lambda t: t.document, "OpenIE row of document", faults).items():
            _known(identifier, texts, "triples are given for document", place, faults, "the corpus")
    if question_entities is not None:
        for identifier, place in _unique(question_entities, lambda e: e[0], "entity row of question", faults).items():
            _known(identifier, asked, "entities are given for question", place, faults)
    faults.settle()

    corpus = tuple(document.value for document in documents)
    batch = tuple(question.value for question in questions)
    complete = {question.id: joined.get(question.id, Gold()) for question in batch}
    lists = None if triples is None else tuple(row.value for row in triples)
    entities = None if question_entities is None else dict(row.value for row in question_entities)
    sha256 = content_hash(corpus, batch, complete, lists, entities)
    card = known_card(name) if card is None else card
    return Dataset(
        name=name, documents=corpus, questions=batch, gold=complete, sha256=sha256, card=card, triples=lists,
        question_entities=entities, extra=dict(extra or {}),
        notes=(*notes, *_oddities(corpus, batch, complete, lists, entities),
               *differences(card, len(corpus), len(batch), sha256)),
    )


def content_hash(
    documents: Iterable[Document],
    questions: Iterable[Question],
    gold: Mapping[str, Gold],
    triples: Iterable[GivenTriples] | None = None,
    question_entities: Mapping[str, tuple[str, ...]] | None = None,
) -> str:
    """Return the SHA-256 of the content in a canonical form: the same for the same data in any file format.

    Order counts, since ids of chunks follow from it. Names, cards and notes do not.
    """
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        digest.update(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    for document in documents:
        add("document", document.id, document.title, document.text)
    for question in questions:
        found = gold.get(question.id, Gold())
        add("question", question.id, question.text, question.type, found.answers, found.passages)
        if question_entities is not None and question.id in question_entities:
            add("entities", question_entities[question.id])
    for row in triples or ():
        add("triples", row.document, row.entities, row.triples)
    return digest.hexdigest()


def _unique(
    rows: Iterable[Located[T]], identify: Callable[[T], str], what: str, faults: FaultList
) -> dict[str, str]:
    """Return id → place; note empty and repeated ids."""
    places: dict[str, str] = {}
    for row in rows:
        identifier = identify(row.value)
        if not identifier.strip():
            faults.add(f"{row.place}: the id of a {what} is empty.", "Give it an id.")
        elif identifier in places:
            faults.add(f'{row.place}: the {what} "{identifier}" is there twice, first at {places[identifier]}.',
                       "Give each its own id, or remove one.")
        else:
            places[identifier] = row.place
    return places


def _known(
    identifier: str, known: Mapping[str, str], what: str, place: str, faults: FaultList, where: str = "the questions"
) -> None:
    if identifier not in known:
        faults.add(f'{place}: {what} "{identifier}", which is not in {where}.',
                   f"Add it to {where}, or remove it here.")


def _not_blank(text: str, what: str, place: str, faults: FaultList) -> None:
    if not text.strip():
        faults.add(f"{place}: {what} is empty.", "Fill it in, or remove it.")


def _once(items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _oddities(
    documents: tuple[Document, ...], questions: tuple[Question, ...], gold: Mapping[str, Gold],
    triples: tuple[GivenTriples, ...] | None, entities: Mapping[str, tuple[str, ...]] | None,
) -> list[str]:
    """Say what is harmless but worth knowing when a score is read."""
    n, found = len(questions), []

    def count(number: int, total: int, what: str) -> None:
        if number:
            found.append(f"{number:,} of {total:,} {what}.")

    if not questions:
        found.append("There are no questions.")
    count(sum(not gold[q.id].answers for q in questions), n, "questions have no gold answer")
    count(sum(not gold[q.id].passages for q in questions), n, "questions have no gold passage")
    count(n - len(Counter(q.text for q in questions)), n, "questions repeat the text of an earlier one")
    count(len(documents) - len({(d.title, d.text) for d in documents}), len(documents),
          "documents repeat the title and text of an earlier one")
    if triples is not None:
        count(len(documents) - len(triples), len(documents), "documents have no given triples")
    if entities is not None:
        count(n - len(entities), n, "questions have no given entities")
    return found
