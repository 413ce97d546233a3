"""HippoRAG's JSON files: a corpus, a question file and, where there is one, the OpenIE results."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_bench.data.build import make_dataset
from graphrag_bench.data.neutral import keep, malformed_note, sound_triples
from graphrag_bench.data.reading import Located, Row, read_array
from graphrag_bench.data.types import Dataset, Document, GivenTriples, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_HOPS = re.compile(r"\dhop\d?(?=__)")  # MuSiQue writes the type of a question into its id
_ANSWERS = ("answer", "gold_ans", "answers", "reference", "obj")
_ALIASES = ("answer_aliases", "possible_answers", "o_wiki_title", "o_aliases")
_EVIDENCE = ("supporting_facts", "context", "contexts", "paragraphs")


@register("dataset", "hipporag")
def hipporag(*, corpus: str, questions: str, openie: str | None = None, name: str | None = None) -> Dataset:
    """Load a dataset as HippoRAG and its kin publish it.

    Gold passages are found by title and text (compared without white space, since the files join sentences in different
    ways); where only the title agrees (HotpotQA, 2WikiMultihopQA) and one passage bears it, by title: a note says so.

    Args:
        corpus: A JSON list of {title, text, idx?}; without ``idx`` the id is the position from 0.
        questions: A JSON list of {question, answer, answer_aliases?} with ``paragraphs`` or ``contexts``
            (is_supporting), or with ``context`` and ``supporting_facts``.
        openie: OpenIE results, {docs: [{passage, extracted_entities, extracted_triples}]}.
        name: The dataset's name; the question file's name where it is not given.

    Raises:
        UserError: A file is missing or faulty, or a gold passage is not in the corpus; it names file and line.
    """
    documents = _documents(Path(corpus).expanduser())
    finder = _Finder(documents)
    extra: dict[str, dict[str, Any]] = {}
    position = -1

    def question(row: Row) -> tuple[Question, Gold]:
        nonlocal position
        position += 1
        identifier = row.label("id", "_id", "qid", default=str(position))
        hops = _HOPS.match(identifier)
        found = Question(identifier, row.text("question"), row.text("type", default=hops[0] if hops else ""))
        keep(extra, identifier, row.others("id", "_id", "qid", "question", "type", *_ANSWERS, *_ALIASES, *_EVIDENCE))
        return found, Gold(_answers(row), tuple(finder.find(*passage, row.place) for passage in _supporting(row)))

    path = Path(questions).expanduser()
    rows = read_array(path, question)
    triples, notes = (None, []) if openie is None else _openie(Path(openie).expanduser(), finder)
    if finder.by_title:
        notes.append(f"{finder.by_title:,} gold passages agree with the corpus in their title only.")
    return make_dataset(
        name or path.name.split(".")[0],
        documents,
        [Located(row.value[0], row.place) for row in rows],
        [Located((row.value[0].id, row.value[1]), row.place) for row in rows],
        triples=triples, notes=notes, extra={"questions": extra} if extra else None,
    )


class _Finder:
    """Finds a document by title and text, or by a title that only one document bears."""

    def __init__(self, documents: list[Located[Document]]) -> None:
        self.by_title = 0
        self._texts: dict[str, str] = {}
        self._titles: dict[str, list[str]] = defaultdict(list)
        for row in documents:
            self._texts.setdefault(_key(row.value.title + row.value.text), row.value.id)
            self._titles[_key(row.value.title)].append(row.value.id)

    def passage(self, text: str) -> str | None:
        return self._texts.get(_key(text))

    def find(self, title: str, text: str, place: str) -> str:
        if (found := self.passage(title + text)) is not None:
            return found
        same = self._titles.get(_key(title), [])
        if len(same) != 1:
            raise UserError(f'{place}: the gold passage "{title}" is not in the corpus.',
                            "Take the corpus that belongs to these questions.")
        self.by_title += 1
        return same[0]


def _key(text: str) -> str:
    return "".join(text.split())


def _documents(path: Path) -> list[Located[Document]]:
    position = -1

    def document(row: Row) -> Document:
        nonlocal position
        position += 1
        identifier = row.label("idx", "id", default=str(position))
        return Document(identifier, row.text("title", default=""), row.text("text", "paragraph_text"))

    return read_array(path, document)


def _answers(row: Row) -> tuple[str, ...]:
    found: list[str] = []
    for name in (next((name for name in _ANSWERS if name in row.fields), ""), *_ALIASES):
        value = row.fields.get(name)
        # PopQA stores its aliases as the JSON text of a list.
        if name == "possible_answers" and isinstance(value, str):
            value = re.findall(r'"((?:[^"\\]|\\.)*)"', value) or value
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict | list | bool):
                raise UserError(f'{row.place}: the field "{name}" must be a text or a list of them.', "Mend the row.")
            found += [] if item is None or item == "" else [str(item)]
    return tuple(found)


def _supporting(row: Row) -> list[tuple[str, str]]:
    """Return (title, text) of each gold passage of a question."""
    for name in ("paragraphs", "contexts"):
        if name in row.fields:
            items = [_mapping(item, name, row) for item in row.items(name)]
            rows = [Row(dict(item), row.place) for item in items if item.get("is_supporting")]
            return [(item.text("title", default=""), item.text("text", "paragraph_text")) for item in rows]
    wanted = {fact[0] for fact in row.items("supporting_facts") if isinstance(fact, list) and fact}
    found = []
    for item in row.items("context"):
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[1], list)):
            raise UserError(f'{row.place}: "context" must hold [title, [sentence, …]] pairs.', "Mend the row.")
        if item[0] in wanted:
            found.append((str(item[0]), "".join(map(str, item[1]))))
    if absent := wanted - {title for title, _ in found}:
        # A supporting title without a paragraph of its own is still gold where the corpus has it.
        found += [(str(title), "") for title in sorted(map(str, absent))]
    return found


def _mapping(item: Any, name: str, row: Row) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise UserError(f'{row.place}: an item of "{name}" is not an object.', "Mend the row.")
    return item


def _openie(path: Path, finder: _Finder) -> tuple[list[Located[GivenTriples]], list[str]]:
    malformed = 0

    def given(row: Row) -> GivenTriples:
        nonlocal malformed
        passage = row.text("passage")
        document = finder.passage(passage)
        if document is None:
            begin = " ".join(passage.split())[:40]
            raise UserError(f'{row.place}: the passage "{begin}…" is not in the corpus.',
                            "Take the OpenIE file that belongs to this corpus.")
        entities, triples, bad = sound_triples(row.items("extracted_entities"), row.items("extracted_triples"))
        malformed += bad
        return GivenTriples(document, entities, triples)

    # Equal passages of the corpus have equal rows here; the first stands for all.
    rows = {row.value.document: row for row in reversed(read_array(path, given, key="docs"))}
    return list(reversed(rows.values())), malformed_note(malformed)
