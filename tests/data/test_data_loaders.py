"""What each loader makes of a sound source."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from graphrag_bench.data.loaders.beir import beir
from graphrag_bench.data.loaders.folder import folder
from graphrag_bench.data.loaders.hipporag import hipporag
from graphrag_bench.data.loaders.hub import hub
from graphrag_bench.data.loaders.unified import unified
from graphrag_bench.data.types import Document, GivenTriples, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.registry import REGISTRY, REQUIRED


def test_folder_reads_what_was_written(good: Path, write: Any) -> None:
    write("openie.jsonl", [
        {"passage_id": "p1", "entities": ["Brask", 7, ""], "malformed_triples": [["one"]],
         "triples": [["Brask", "on", "Isken"], ["a", "b"], ["a", "", "c"], "x"]},
    ])  # fmt: skip
    write("query_entities.jsonl", [{"question_id": "q1", "entities": ["Brask"]}])
    data = folder(path=str(good), name="mine")
    assert data.name == "mine" and data.card.name == "mine"
    assert data.documents[0] == Document("p1", "Brask", "Brask lies on the Isken.")
    assert data.questions == (Question("q1", "Where does Brask's river end?", "2hop"), Question("q2", "Who built it?"))
    assert data.gold == {"q1": Gold(("Dunmere",), ("p1", "p2")), "q2": Gold()}
    assert data.triples == (GivenTriples("p1", ("Brask",), (("Brask", "on", "Isken"),)),)
    assert data.question_entities == {"q1": ("Brask",)}
    assert data.notes == (
        "6 malformed entities or triples of the given OpenIE were set aside.",
        "1 of 2 questions have no gold answer.",
        "1 of 2 questions have no gold passage.",
        "2 of 3 documents have no given triples.",
        "1 of 2 questions have no given entities.",
    )


def test_folder_needs_only_a_corpus_and_takes_gzip_crlf_and_an_open_last_line(tmp_path: Path, write: Any) -> None:
    write("corpus.jsonl.gz", '{"id": "a", "text": "One\\r\\ntwo 😀."}\r\n\r\n{"id": "b", "text": "Three."}')
    data = folder(path=str(tmp_path))
    assert [d.text for d in data.documents] == ["One\r\ntwo 😀.", "Three."]
    assert (data.questions, data.gold, data.triples, data.question_entities) == ((), {}, None, None)
    assert data.name == tmp_path.name and data.notes == ("There are no questions.",)


def test_further_fields_are_kept_apart_and_never_in_a_question(good: Path, write: Any) -> None:
    write("corpus.jsonl", [{"id": "p1", "text": "One.", "author": "N."}])
    write("questions.jsonl", [{"id": "q1", "question": "?", "answers": ["secret"], "level": "hard"}])
    write("description.md", "What it is about.\n")
    data = folder(path=str(good))
    assert data.extra == {
        "documents": {"p1": {"author": "N."}},
        "questions": {"q1": {"level": "hard"}},
        "description": "What it is about.",
    }  # fmt: skip
    assert "secret" not in repr(data.questions) + repr(data.extra)


def test_hash_is_of_the_content_not_of_the_bytes(good: Path, write: Any) -> None:
    first = folder(path=str(good))
    rows = [json.loads(line) for line in (good / "corpus.jsonl").read_text().splitlines()]
    (good / "corpus.jsonl").unlink()
    write("corpus.jsonl.gz", [dict(reversed(row.items())) for row in rows])
    assert folder(path=str(good), name="other").sha256 == first.sha256
    for change in (rows[::-1], [rows[0] | {"title": "X"}, *rows[1:]], [*rows, {"id": "p4", "text": "More."}]):
        write("corpus.jsonl.gz", change)
        assert folder(path=str(good)).sha256 != first.sha256


def test_hash_covers_gold_triples_and_entities(good: Path, write: Any) -> None:
    seen = {folder(path=str(good)).sha256}
    write("openie.jsonl", [{"passage_id": "p1", "entities": ["Brask"]}])
    seen.add(folder(path=str(good)).sha256)
    write("query_entities.jsonl", [{"question_id": "q1", "entities": ["Brask"]}])
    seen.add(folder(path=str(good)).sha256)
    write("questions.jsonl", [{"id": "q1", "question": "Where does Brask's river end?", "answers": ["D"]}])
    seen.add(folder(path=str(good)).sha256)
    assert len(seen) == 4


def test_a_card_beside_the_data_is_compared_with_it(good: Path, write: Any) -> None:
    write("card.yaml", "licence: MIT\ndocuments: 4\nquestions: 2\n")
    data = folder(path=str(good))
    assert data.card.licence == "MIT" and data.card.name == good.name
    assert f"The card of {good.name} expects 4 documents, but 3 were loaded." in data.notes
    write("card.yaml", f"documents: 3\nsha256: '{'0' * 64}'\n")
    assert any("expects the content 000000000000…" in note for note in folder(path=str(good)).notes)
    write("card.yaml", f"documents: 3\nsha256: '{data.sha256}'\n")
    assert not any("card" in note for note in folder(path=str(good)).notes)


def test_a_card_that_ships_is_found_by_name_and_a_name_never_leaves_the_folder(good: Path) -> None:
    assert "HippoRAG" in folder(path=str(good), name="musique_train100").card.source
    assert folder(path=str(good), name="../cards/musique_train100").card.source == ""


HIPPO = [{"title": "A", "text": "One.Two.", "idx": 5}, {"title": "B", "text": "Three.", "idx": 6}]


def test_hipporag_musique_form(write: Any) -> None:
    corpus = write("x_corpus.json", json.dumps(HIPPO, indent=1))
    paragraphs = [
        {"title": "B", "paragraph_text": "Three.", "is_supporting": True},
        {"title": "C", "paragraph_text": "No.", "is_supporting": False},
    ]
    row = {"id": "2hop__1_2", "question": "?", "answer": "x", "answer_aliases": ["X.", "x"], "answerable": True}
    passages = [
        {"passage": "A\nOne.Two.", "extracted_entities": ["A"], "extracted_triples": [["A", "is", "one"], ["A"]]},
        {"passage": "B\nThree.", "extracted_entities": [], "extracted_triples": []},
    ]
    questions = write("x.json", json.dumps([row | {"paragraphs": paragraphs}]))
    openie = write("o.json", json.dumps({"docs": passages}))
    data = hipporag(corpus=str(corpus), questions=str(questions), openie=str(openie))
    assert data.name == "x" and data.questions == (Question("2hop__1_2", "?", "2hop"),)
    assert data.gold == {"2hop__1_2": Gold(("x", "X."), ("6",))}
    assert data.triples == (GivenTriples("5", ("A",), (("A", "is", "one"),)), GivenTriples("6", (), ()))
    assert data.extra == {"questions": {"2hop__1_2": {"answerable": True}}}
    assert data.notes == ("1 malformed entities or triples of the given OpenIE were set aside.",)


def test_hipporag_hotpotqa_form_joins_sentences_either_way_and_falls_back_on_titles(write: Any) -> None:
    corpus = write("c.json", json.dumps([{"title": r["title"], "text": r["text"]} for r in HIPPO]))
    rows = [
        {"_id": "h1", "question": "?", "answer": "x", "type": "bridge",
         "supporting_facts": [["A", 0], ["B", 0], ["A", 1]],
         "context": [["A", ["One.", " Two."]], ["B", ["Thr."]], ["C", ["No."]]]},
        {"_id": "h2", "question": "??", "answer": "y", "supporting_facts": [["B", 0]], "context": []},
    ]  # fmt: skip
    data = hipporag(corpus=str(corpus), questions=str(write("q.json", json.dumps(rows))))
    assert data.gold == {"h1": Gold(("x",), ("0", "1")), "h2": Gold(("y",), ("1",))}
    assert data.questions[0].type == "bridge"
    assert "2 gold passages agree with the corpus in their title only." in data.notes


def test_hipporag_popqa_form(write: Any) -> None:
    row = {"id": 7, "question": "?", "obj": "politician", "possible_answers": '["politician", "pol."]',
           "paragraphs": [{**HIPPO[1], "is_supporting": True}]}  # fmt: skip
    data = hipporag(corpus=str(write("c.json", json.dumps(HIPPO))), questions=str(write("q.json", json.dumps([row]))))
    assert data.gold == {"7": Gold(("politician", "pol."), ("6",))}


def test_hipporag_corpus_with_the_same_passage_twice(write: Any) -> None:
    twice = [{"title": "A", "text": "One."}] * 2
    openie = {"docs": [{"passage": "A\nOne.", "extracted_entities": ["A"], "extracted_triples": []}] * 2}
    questions = [{"question": "?", "answer": "x", "paragraphs": [twice[0] | {"is_supporting": True}]}]
    data = hipporag(
        corpus=str(write("c.json", json.dumps(twice))), questions=str(write("q.json", json.dumps(questions))),
        openie=str(write("o.json", json.dumps(openie))),
    )  # fmt: skip
    assert data.gold["0"].passages == ("0",) and data.triples == (GivenTriples("0", ("A",), ()),)
    assert "1 of 2 documents repeat the title and text of an earlier one." in data.notes


def test_unified_form(write: Any, tmp_path: Path) -> None:
    write("Corpus.json", [{"title": "A", "context": "One."}, {"title": "B", "context": "Two.", "doc_id": 9}])
    write("Question.json", [
        {"question": "?", "answer": "x|X. | ", "options": ["x", "y"], "answer_idx": 0},
        {"question": "??", "answer": ["a|b"], "id": "k"},
        {"question": "???", "answer": 1912},
        {"question": "????"},
    ])  # fmt: skip
    data = unified(path=str(tmp_path))
    assert [d.id for d in data.documents] == ["0", "9"]
    assert data.gold == {"0": Gold(("x", "X.")), "k": Gold(("a|b",)), "2": Gold(("1912",)), "3": Gold()}
    assert data.extra == {"questions": {"0": {"options": ["x", "y"], "answer_idx": 0}}}
    assert unified(path=str(tmp_path), alias_separator="").gold["0"] == Gold(("x|X. |",))


def test_beir_form(write: Any, tmp_path: Path) -> None:
    write("corpus.jsonl.gz", [{"_id": "d1", "title": "A", "text": "One."}, {"_id": "d2", "title": "", "text": "Two."}])
    write("queries.jsonl", [{"_id": f"q{n}", "text": "?" * n, "metadata": {}} for n in (1, 2, 3)])
    write("qrels/dev.tsv", "query-id\tcorpus-id\tscore\nq3\td1\t0\nq1\td1\t2\nq1\td2\t1\n")
    data = beir(path=str(tmp_path), split="dev")
    assert data.questions == (Question("q1", "?"), Question("q3", "???"))
    assert data.gold == {"q1": Gold((), ("d1", "d2")), "q3": Gold()}
    assert data.notes[0] == "1 of 3 queries are not judged in the split dev and were left out."


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str | None, str], list[dict[str, Any]]]:
    """A stand-in for the library `datasets`: tables by (repository, configuration, split)."""
    tables: dict[tuple[str, str | None, str], list[dict[str, Any]]] = {}
    module = ModuleType("datasets")
    module.__spec__ = type(sys.__spec__)("datasets", None)

    def load_dataset(repo: str, config: str | None, *, split: str, revision: str | None) -> list[dict[str, Any]]:
        if (repo, config, split) not in tables:
            raise ValueError(f"BuilderConfig '{config}' not found.\nAvailable: []")
        return tables[repo, config, split]

    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return tables


def test_hub_form(fake_hub: dict[Any, Any]) -> None:
    fake_hub["me/set", "corpus", "train"] = [
        {"key": 3, "title": None, "body": "One."}, {"key": 4, "title": "B", "body": "Two."},
    ]  # fmt: skip
    fake_hub["me/set", "questions", "test"] = [{"question": "?", "answers": "x", "gold": [4], "type": "2hop"}]
    data = hub(repo="me/set", document_id_field="key", text_field="body", gold_field="gold", type_field="type")
    assert data.name == "set" and [d.id for d in data.documents] == ["3", "4"]
    assert data.questions == (Question("0", "?", "2hop"),) and data.gold == {"0": Gold(("x",), ("4",))}


def test_hub_faults_name_the_row(fake_hub: dict[Any, Any]) -> None:
    with pytest.raises(UserError, match=r"set/corpus/train cannot be loaded .*: BuilderConfig 'corpus' not found\. "):
        hub(repo="me/set")
    fake_hub["me/set", "corpus", "train"] = [{"id": "a", "text": "One."}, {"id": "b", "text": 2}]
    with pytest.raises(UserError, match='me/set/corpus/train:2: the field "text" must be a string, but it is a number'):
        hub(repo="me/set")


def test_hub_without_the_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"graphrag-bench\[hub\]"):
        hub(repo="me/set")


def test_every_page_of_the_group_sets_what_its_loader_takes() -> None:
    pages = sorted((Path(__file__).parents[2] / "conf" / "dataset").glob("*.yaml"))
    assert {page.stem for page in pages} >= {"sample", "folder", "hipporag", "unified", "beir", "hub"}
    for page in pages:
        settings = yaml.safe_load(page.read_text())
        component = REGISTRY.get("dataset", settings.pop("loader"))
        assert settings.keys() <= component.settings.keys(), page.name
        for name, value in settings.items():
            default = component.settings[name].default
            assert value == ("???" if default is REQUIRED else default), (page.name, name)
