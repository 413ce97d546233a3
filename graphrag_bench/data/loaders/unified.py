"""The unified testbed's folders: ``Corpus.json`` and ``Question.json``, both JSON lines in spite of their names."""

from typing import Any

from graphrag_bench.data.build import make_dataset
from graphrag_bench.data.neutral import existing_folder, keep, need_file
from graphrag_bench.data.reading import Located, Row, read_records
from graphrag_bench.data.types import Dataset, Document, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("dataset", "unified")
def unified(*, path: str, name: str | None = None, alias_separator: str = "|") -> Dataset:
    """Load a folder of the unified testbed (or of ArchRAG, which has the same files).

    Documents have ``title`` and ``context``; their id is ``doc_id`` or ``id``, else the row number from 0. Questions
    have ``question`` and ``answer``; the id is ``id``, else the row number. There are no gold passages in this format.
    Further columns (options, answer_idx, qa_pairs, label, …) are kept in ``Dataset.extra["questions"]``.

    Args:
        path: The folder.
        name: The dataset's name; the folder's name where it is not given.
        alias_separator: Splits one answer text into aliases; empty keeps it whole.

    Raises:
        UserError: A file is missing or faulty; it names file and line.
    """
    folder = existing_folder(path)
    rows = {"documents": 0, "questions": 0}
    extra: dict[str, dict[str, Any]] = {"documents": {}, "questions": {}}

    def number(what: str) -> str:
        rows[what] += 1
        return str(rows[what] - 1)

    def document(row: Row) -> Document:
        identifier = row.label("doc_id", "id", default=number("documents"))
        keep(extra["documents"], identifier, row.others("title", "context", "doc_id", "id"))
        return Document(identifier, row.text("title", default=""), row.text("context"))

    def question(row: Row) -> tuple[Question, Gold]:
        identifier = row.label("id", "_id", default=number("questions"))
        keep(extra["questions"], identifier, row.others("question", "answer", "id", "_id", "type", "question_type"))
        text = Question(identifier, row.text("question"), row.label("type", "question_type", default=""))
        return text, Gold(answers=_answers(row, alias_separator))

    documents = read_records(need_file(folder, "Corpus.json", "corpus"), document)
    found = read_records(need_file(folder, "Question.json", "questions"), question)
    return make_dataset(
        name or folder.resolve().name,
        documents,
        [Located(row.value[0], row.place) for row in found],
        [Located((row.value[0].id, row.value[1]), row.place) for row in found],
        extra={key: value for key, value in extra.items() if value},
    )


def _answers(row: Row, separator: str) -> tuple[str, ...]:
    value = row.fields.get("answer")
    if isinstance(value, list):
        return row.texts("answer")
    if isinstance(value, bool | float | dict):
        raise UserError(f'{row.place}: the field "answer" must be a string or a list of them.', "Put it in quotes.")
    text = row.label("answer", default="")
    return tuple(part.strip() for part in (text.split(separator) if separator else [text]) if part.strip())
