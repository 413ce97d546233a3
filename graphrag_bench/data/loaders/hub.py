"""Datasets of the Hugging Face hub, through the ``datasets`` library."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from graphrag_bench.data.build import make_dataset
from graphrag_bench.data.reading import FaultList, Located, Row
from graphrag_bench.data.types import Dataset, Document, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

T = TypeVar("T")


@register("dataset", "hub")
def hub(
    *,
    repo: str,
    revision: str | None = None,
    corpus_config: str | None = "corpus",
    corpus_split: str = "train",
    questions_config: str | None = "questions",
    questions_split: str = "test",
    document_id_field: str = "id",
    title_field: str | None = "title",
    text_field: str = "text",
    question_id_field: str = "id",
    question_field: str = "question",
    answers_field: str | None = "answers",
    gold_field: str | None = None,
    type_field: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Load corpus and questions from a repository of the Hugging Face hub.

    Args:
        repo: The repository, ``owner/name``, or a format of ``datasets`` itself.
        revision: Branch, tag or commit; a commit makes the run repeatable.
        corpus_config: The configuration that holds the corpus; None where there is only one.
        corpus_split: Its split.
        questions_config: The configuration that holds the questions.
        questions_split: Its split.
        document_id_field: Field of the document's id; where a row lacks it, the row number from 0 is the id.
        title_field: Field of the title, or None.
        text_field: Field of the text.
        question_id_field: Field of the question's id; where a row lacks it, the row number from 0 is the id.
        question_field: Field of the question.
        answers_field: Field of the answer, a text or a list of them, or None.
        gold_field: Field of the ids of the gold passages, or None.
        type_field: Field of the type, or None.
        name: The dataset's name; the repository's where it is not given.

    Raises:
        UserError: ``datasets`` is not installed, the repository cannot be had, or a row is faulty.
    """
    library = _library()

    def document(row: Row, number: int) -> Document:
        title = row.text(title_field, default="") if title_field else ""
        return Document(row.label(document_id_field, default=str(number)), title, row.text(text_field))

    def question(row: Row, number: int) -> tuple[Question, Gold]:
        identifier = row.label(question_id_field, default=str(number))
        kind = row.label(type_field, default="") if type_field else ""
        gold = Gold(_texts(row, answers_field), _labels(row, gold_field))
        return Question(identifier, row.text(question_field), kind), gold

    documents = _read(library, repo, corpus_config, corpus_split, revision, document)
    rows = _read(library, repo, questions_config, questions_split, revision, question)
    return make_dataset(
        name or repo.split("/")[-1],
        documents,
        [Located(row.value[0], row.place) for row in rows],
        [Located((row.value[0].id, row.value[1]), row.place) for row in rows],
    )


def _library() -> Any:
    if importlib.util.find_spec("datasets") is None:
        raise UserError("The loader `hub` needs the package `datasets`, which is not installed.",
                        'Install it with `pip install "graphrag-bench[hub]"`.')
    return importlib.import_module("datasets")


def _read(
    library: Any, repo: str, config: str | None, split: str, revision: str | None, parse: Callable[[Row, int], T]
) -> list[Located[T]]:
    where = "/".join(part for part in (repo, config, split) if part)
    try:
        table = library.load_dataset(repo, config, split=split, revision=revision)
    # What `datasets` raises for an unknown repository, configuration, split or network.
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{where} cannot be loaded from the hub: {reason}",
                        "Check repo, config, split and revision, and that the hub can be reached.") from error
    faults = FaultList(where)
    found = []
    for number, fields in enumerate(_rows(table)):
        with faults.catching():
            row = Row(fields, f"{where}:{number + 1}")
            found.append(Located(parse(row, number), row.place))
    faults.settle()
    return found


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for fields in table:
        yield dict(fields)


def _texts(row: Row, name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    if isinstance(row.fields.get(name), list):
        return row.texts(name)
    return tuple(filter(None, [row.text(name, default="")]))


def _labels(row: Row, name: str | None) -> tuple[str, ...]:
    if name is None:
        return ()
    return tuple(Row({name: item}, row.place).label(name, default="") for item in row.items(name))
