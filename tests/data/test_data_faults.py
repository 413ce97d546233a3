"""Every kind of broken data is refused whole, in a sentence that names file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_bench.data.loaders.beir import beir
from graphrag_bench.data.loaders.folder import folder
from graphrag_bench.data.loaders.hipporag import hipporag
from graphrag_bench.data.loaders.unified import unified
from graphrag_bench.errors import Faults, UserError

C, Q, T, E = "corpus.jsonl", "questions.jsonl", "openie.jsonl", "query_entities.jsonl"
P1 = '{"id": "p1", "text": "One."}\n'
Q1 = '{"id": "q1", "question": "What?"}\n'
CUT = gzip.compress((P1 + "".join(f'{{"id": "x{n}", "text": "{n * 7919}"}}\n' for n in range(500))).encode())[:-400]

# (file, its content, what the sentence must hold); each replaces one file of a sound folder
BAD: dict[str, tuple[str, str | bytes, str]] = {
    "empty file": (C, "", "corpus.jsonl:1: the file is empty"),
    "blank lines only": (C, "\n\n", "corpus.jsonl:1: the file is empty"),
    "empty questions": (Q, "", "questions.jsonl:1: the file is empty"),
    "byte order mark": (C, b"\xef\xbb\xbf" + P1.encode(), "corpus.jsonl:1: the file begins with a byte order mark"),
    "latin-1": (
        C, P1.encode() + b'{"id": "p2", "text": "caf\xe9"}\n',
        "corpus.jsonl:2: byte 26 of the line is not UTF-8",
    ),
    "UTF-16": (C, P1.encode("utf-16"), "corpus.jsonl:1: the file is UTF-16"),
    "gzip without its name": (C, gzip.compress(P1.encode()), "corpus.jsonl:1: the file is gzip but its name"),
    "broken line": (
        C, P1 + '{"id": "p2", "text": \n' + P1.replace("p1", "p3"),
        "corpus.jsonl:2: not valid JSON at column",
    ),
    "two objects on a line": (C, P1.strip() + P1, "corpus.jsonl:1: not valid JSON at column"),
    "indented JSON": (C, json.dumps([{"id": "p1"}], indent=1), "corpus.jsonl:1: the file is one indented JSON value"),
    "a list for an object": (C, P1 + '["p2", "Two."]\n', "corpus.jsonl:2: not a JSON object"),
    "NaN": (C, '{"id": "p1", "text": "One.", "score": NaN}\n', "corpus.jsonl:1: not valid JSON: NaN is not JSON"),
    "a field twice": (
        C, '{"id": "p1", "id": "p2", "text": "One."}\n',
        'corpus.jsonl:1: not valid JSON: the field "id" is given twice',
    ),
    "half a surrogate pair": (
        C, '{"id": "p1", "text": "\\ud800"}\n',
        "corpus.jsonl:1: a \\u escape is half of a surrogate pair",
    ),
    "text missing": (C, P1 + '{"id": "p2"}\n', 'corpus.jsonl:2: the field "text" is missing'),
    "id missing": (C, '{"text": "One."}\n', 'corpus.jsonl:1: the field "id" is missing'),
    "id a number": (
        C, '{"id": 1, "text": "One."}\n',
        'corpus.jsonl:1: the field "id" must be a string, but it is a number',
    ),
    "text a list": (
        C, '{"id": "p1", "text": ["One."]}\n',
        'corpus.jsonl:1: the field "text" must be a string, but it is a list',
    ),
    "text null": (C, '{"id": "p1", "text": null}\n', 'corpus.jsonl:1: the field "text" is missing'),
    "text blank": (C, P1 + '{"id": "p2", "text": " \\n"}\n', 'corpus.jsonl:2: the text of document "p2" is empty'),
    "id blank": (C, '{"id": "", "text": "One."}\n', "corpus.jsonl:1: the id of a document is empty"),
    "document twice": (C, P1 + P1, 'corpus.jsonl:2: the document "p1" is there twice, first at'),
    "question twice": (Q, Q1 + Q1, 'questions.jsonl:2: the question "q1" is there twice'),
    "question blank": (Q, Q1 + '{"id": "q2", "question": ""}\n', 'questions.jsonl:2: question "q2" is empty'),
    "question missing": (Q, '{"id": "q1", "text": "What?"}\n', 'questions.jsonl:1: the field "question" is missing'),
    "answers a string": (
        Q, '{"id": "q1", "question": "?", "answers": "yes"}\n',
        'questions.jsonl:1: the field "answers" must be a list, but it is a string',
    ),
    "an answer a number": (
        Q, '{"id": "q1", "question": "?", "answers": [7]}\n',
        'questions.jsonl:1: the field "answers" must be a list of strings',
    ),
    "an answer blank": (
        Q, '{"id": "q1", "question": "?", "answers": [""]}\n',
        'questions.jsonl:1: an answer of question "q1" is empty',
    ),
    "gold outside the corpus": (
        Q, Q1 + '{"id": "q2", "question": "?", "gold_passages": ["p9"]}\n',
        'questions.jsonl:2: question "q2" has the gold passage "p9", which is not in the corpus',
    ),
    "triples of no document": (
        T, '{"passage_id": "p9"}\n',
        'openie.jsonl:1: triples are given for document "p9", which is not in the corpus',
    ),
    "triples twice": (
        T, '{"passage_id": "p1"}\n' * 2,
        'openie.jsonl:2: the OpenIE row of document "p1" is there twice',
    ),
    "triples an object": (
        T, '{"passage_id": "p1", "triples": {}}\n',
        'openie.jsonl:1: the field "triples" must be a list, but it is an object',
    ),
    "entities of no question": (
        E, '{"question_id": "q9", "entities": []}\n',
        'query_entities.jsonl:1: entities are given for question "q9", which is not in the questions',
    ),
    "entities mixed": (
        E, '{"question_id": "q1", "entities": ["a", null]}\n',
        'query_entities.jsonl:1: the field "entities" must be a list of strings, but an item of it is null',
    ),
    "card of no field": ("card.yaml", "licence: MIT\nlicense: MIT\n", "card.yaml: a card has no field 'license'."),
    "card broken": ("card.yaml", "a: b\n\tc: d\n", "card.yaml:2: the card is not valid YAML"),
    "card a list": ("card.yaml", "- a\n", "card.yaml:1: a card is a mapping of fields"),
    "card count a word": ("card.yaml", "documents: many\n", "card.yaml: documents must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_fault_is_one_sentence_with_file_and_line(kind: str, good: Path, write: Any) -> None:
    name, content, said = BAD[kind]
    place = write(name, content)
    with pytest.raises(UserError) as caught:
        folder(path=str(good))
    assert said in caught.value.problem
    assert caught.value.problem.startswith(str(place))
    assert caught.value.fix and "\n" not in caught.value.problem
    assert not isinstance(caught.value, Faults)


def test_a_gzip_cut_short_names_the_line_it_ends_at(good: Path, write: Any) -> None:
    (good / C).unlink()
    (good / "corpus.jsonl.gz").write_bytes(CUT)
    with pytest.raises(UserError, match=r"corpus\.jsonl\.gz:\d+: .*(damaged or cut short|not valid JSON)"):
        folder(path=str(good))


def test_a_plain_file_named_gz(good: Path) -> None:
    (good / C).rename(good / "corpus.jsonl.gz")
    with pytest.raises(UserError, match=r"corpus\.jsonl\.gz:1: the gzip stream is damaged"):
        folder(path=str(good))


def test_a_folder_without_a_corpus(good: Path) -> None:
    (good / C).unlink()
    with pytest.raises(UserError, match=r"has no corpus\. It should hold corpus\.jsonl or corpus\.jsonl\.gz"):
        folder(path=str(good))


def test_a_path_that_does_not_exist_or_is_a_file(good: Path) -> None:
    with pytest.raises(UserError, match="nowhere does not exist"):
        folder(path=str(good / "nowhere"))
    with pytest.raises(UserError, match="is a file, not a folder"):
        folder(path=str(good / C))


def test_a_plain_and_a_gzipped_file_of_one_name(good: Path, write: Any) -> None:
    write("corpus.jsonl.gz", P1)
    with pytest.raises(UserError, match=r"holds both corpus\.jsonl and corpus\.jsonl\.gz"):
        folder(path=str(good))


def test_a_directory_where_a_file_should_be(good: Path) -> None:
    (good / C).unlink()
    (good / C).mkdir()
    with pytest.raises(UserError, match=r"corpus\.jsonl cannot be read: Is a directory"):
        folder(path=str(good))


def test_the_faults_of_a_file_come_together_each_with_its_line(good: Path, write: Any) -> None:
    write(C, P1 + "[]\n" + '{"id": "p2"}\n' + b"\xff\n".decode("latin-1") + '{"id": "p3", "text": 3}\n')
    with pytest.raises(Faults) as caught:
        folder(path=str(good))
    assert [fault.problem.split(": ")[0] for fault in caught.value.faults] == [f"{good / C}:{n}" for n in (2, 3, 4, 5)]
    assert "4 faults in" in caught.value.problem and "nothing of it was loaded" in caught.value.problem


def test_no_more_than_ten_faults_are_listed(good: Path, write: Any) -> None:
    write(C, "oops\n" * 1000)
    with pytest.raises(Faults, match="The first 10 faults") as caught:
        folder(path=str(good))
    assert len(caught.value.faults) == 10


# Formats of others ---------------------------------------------------------------------------------------------------

ITEM = {"title": "A", "text": "One."}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[\n {"title": "A", "text": "x"},\n {"title": "B"}\n]', ':3 (item 2): the field "text" is missing'),
        ('[\n {"title": "A", "text": "x"},\n {"title": "B" "text": "y"}\n]', ":3 (item 2): not valid JSON: Expecting"),
        ('[\n {"title": "A", "text": "x"}\n {"title": "B", "text": "y"}\n]', ":2 (item 1): not valid JSON: a comma"),
        ('[\n {"title": "A", "text": "x"},\n', ":3 (item 2): not valid JSON"),
        ('[\n {"title": "A", "text": "x"}', ":2 (item 1): not valid JSON: a comma"),
        ('[{"title": "A", "text": "x"}]\n]', ":2: there is text after the list"),
        ("[]", ":1: the list is empty"),
        ("{}", ":1: the file should be a JSON list"),
        (" \n", ":1: the file is empty"),
        ('[{"title": "A", "text": "x"}, 7]', ":1 (item 2): not a JSON object"),
    ],
)
def test_faults_of_a_json_list(write: Any, content: str, said: str) -> None:
    path = write("c.json", content)
    with pytest.raises(UserError) as caught:
        hipporag(corpus=str(path), questions=str(path))
    assert caught.value.problem.startswith(f"{path}{said}")


def test_a_hipporag_gold_passage_must_be_in_the_corpus(write: Any) -> None:
    corpus = write("c.json", json.dumps([ITEM]))
    gold = [{"title": "B", "paragraph_text": "Two.", "is_supporting": True}]
    questions = write("q.json", json.dumps([{"question": "?", "answer": "1", "paragraphs": gold}]))
    with pytest.raises(UserError, match=r'q\.json:1 \(item 1\): the gold passage "B" is not in the corpus'):
        hipporag(corpus=str(corpus), questions=str(questions))


def test_a_hipporag_title_borne_twice_identifies_nothing(write: Any) -> None:
    corpus = write("c.json", json.dumps([ITEM, ITEM | {"text": "Two."}]))
    row = {"question": "?", "answer": "1", "supporting_facts": [["A", 0]], "context": [["A", ["Three."]]]}
    with pytest.raises(UserError, match='the gold passage "A" is not in the corpus'):
        hipporag(corpus=str(corpus), questions=str(write("q.json", json.dumps([row]))))


def test_hipporag_openie_of_another_corpus(write: Any) -> None:
    corpus = write("c.json", json.dumps([ITEM]))
    questions = write("q.json", json.dumps([{"question": "?", "answer": "1", "paragraphs": []}]))
    openie = write("o.json", json.dumps({"docs": [{"passage": "B\nTwo."}]}))
    with pytest.raises(UserError, match=r"o\.json:1 \(item 1 of docs\): the passage .* is not in the corpus"):
        hipporag(corpus=str(corpus), questions=str(questions), openie=str(openie))
    with pytest.raises(UserError, match='there is no list under "docs"'):
        hipporag(corpus=str(corpus), questions=str(questions), openie=str(write("o.json", "{}")))


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        ("query-id\tcorpus-id\tscore\nq1\td1\n", ":2: 2 fields where three are wanted"),
        ("q1\td1\thigh\n", ":1: the score 'high' is not a number"),
        ("query-id\tcorpus-id\tscore\n", ":1: the file is empty"),
        ("q1\td9\t1\n", ':1: question "q1" has the gold passage "d9", which is not in the corpus'),
        ("q1\td1\t1\nq9\td1\t1\n", ':2: gold is given for question "q9", which is not in the questions'),
    ],
)
def test_faults_of_beir_judgements(write: Any, tmp_path: Path, qrels: str, said: str) -> None:
    write("corpus.jsonl", [{"_id": "d1", "text": "One."}])
    write("queries.jsonl", [{"_id": "q1", "text": "?"}])
    path = write("qrels/test.tsv", qrels)
    with pytest.raises(UserError) as caught:
        beir(path=str(tmp_path))
    assert caught.value.problem.startswith(f"{path}{said}")


def test_a_beir_split_that_is_not_there(write: Any, tmp_path: Path) -> None:
    write("corpus.jsonl", [{"_id": "d1", "text": "One."}])
    write("queries.jsonl", [{"_id": "q1", "text": "?"}])
    with pytest.raises(UserError, match="has no judgements of the split dev"):
        beir(path=str(tmp_path), split="dev")


def test_a_unified_answer_that_is_no_text(write: Any, tmp_path: Path) -> None:
    write("Corpus.json", [{"title": "A", "context": "One."}])
    write("Question.json", [{"question": "?", "answer": True}])
    with pytest.raises(UserError, match=r'Question\.json:1: the field "answer" must be a string or a list'):
        unified(path=str(tmp_path))
