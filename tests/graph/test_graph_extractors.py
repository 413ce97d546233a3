"""Extraction: what a dataset gives, and what a model says in two turns."""

import asyncio

import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.data.types import GivenTriples
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import Extraction, clean
from graphrag_bench.graph.extractors.llm import extract
from graphrag_bench.graph.extractors.openie import read
from graphrag_bench.llm.base import Failure, Reply


def chunk(number, text, *documents):
    return Chunk(number, text, "", documents, len(text.split()))


def given(document, entities=(), triples=()):
    return GivenTriples(document, tuple(entities), tuple(triples))


def openie(chunks, rows):
    return asyncio.run(read(tuple(chunks), tuple(rows)))


def test_a_document_that_is_one_chunk_gives_it_everything():
    found = openie(
        [chunk(0, "Ada built it.", "a"), chunk(1, "Bob burned it.", "b")],
        [given("b", ["Bob"], [("Bob", "burned", "mill")]), given("a", ["Ada", "Ada "], [("Ada", "built", "mill")])],
    )
    assert found == Extraction((("Ada",), ("Bob",)), ((("Ada", "built", "mill"),), (("Bob", "burned", "mill"),)), {})


def test_a_document_cut_into_chunks_gives_each_what_it_holds():
    pieces = [
        chunk(0, "Ada BUILT the Glass Bridge.", "a"),
        chunk(1, "The glass bridge fell.", "a"),
        chunk(2, "Nothing more.", "a"),
    ]
    found = openie(
        pieces,
        [
            given(
                "a",
                ["Ada", "Glass Bridge", "Unsaid"],
                [("ada", "built", "Glass Bridge"), ("Ada", "was", "tall"), ("it", "was", "lost")],
            )
        ],
    )
    assert found.entities == (("Ada", "Glass Bridge", "Unsaid"), ("Glass Bridge",), ())
    # by its subject or its object; what no chunk holds goes to the first ("it" stands in none of them)
    assert found.triples == (
        (("ada", "built", "Glass Bridge"), ("Ada", "was", "tall"), ("it", "was", "lost")),
        (("ada", "built", "Glass Bridge"),),
        (),
    )
    assert found.failed == {}


def test_a_chunk_of_merged_duplicates_has_the_facts_of_all_its_documents_once():
    found = openie(
        [chunk(0, "Ada built it.", "a", "b")],
        [
            given("a", ["Ada"], [("Ada", "built", "it")]),
            given("b", ["Ada", "Bob"], [("Ada", "built", "it"), ("Bob", "saw", "it")]),
        ],
    )
    assert found.entities == (("Ada", "Bob"),)
    assert found.triples == ((("Ada", "built", "it"), ("Bob", "saw", "it")),)


def test_a_document_nobody_spoke_of_has_failed_and_says_so():
    found = openie([chunk(0, "Ada.", "a"), chunk(1, "Bob.", "b"), chunk(2, "Cy.", "b", "a")], [given("a", ["Ada"])])
    assert set(found.failed) == {1}
    assert found.failed[1].startswith("missing: ")
    assert found.statistics()["failed"] == {"missing": 1}
    with pytest.raises(UserError, match="none of its documents"):
        openie([chunk(0, "Ada.", "a")], [given("z")])


@pytest.mark.parametrize(
    ("entities", "triples", "expected"),
    [
        ([" Ada  Brown ", "Ada Brown", "", "  ", "ada brown"], [], (("Ada Brown", "ada brown"), ())),
        (
            [],
            [["a ", "b", "c"], ["a", "b", "c"], ["a", "b"], ["a", "", "c"], ["a", "b", "c", "d"], [1, "b", 2]],
            ((), (("a", "b", "c"), ("1", "b", "2"))),
        ),
    ],
)
def test_clean(entities, triples, expected):
    assert clean(entities, triples) == expected


def test_an_extraction_is_opened_as_it_was_saved(tmp_path):
    extraction = Extraction((("Ada", "Ø"), (), ("x",)), ((("Ada", "is", "北京"),), (), ()), {1: "timeout: 60 s", 2: ""})
    extraction.save(tmp_path)
    assert Extraction.open(tmp_path) == extraction
    assert extraction.statistics() == {
        "chunks": 3,
        "entities": 3,
        "triples": 1,
        "chunks_without_triple": 2,
        "failed": {"timeout": 1, "": 1},
        "cut": 0,
        "parse_rate": round(1 / 3, 4),
    }
    empty = Extraction((), ())
    empty.save(tmp_path)
    assert Extraction.open(tmp_path) == empty
    assert empty.statistics()["parse_rate"] == 1.0


class Model:
    """Answers by purpose and subject; keeps what it was asked."""

    window = 4096
    concurrency = 2

    def __init__(self, replies):
        self.replies = replies
        self.requests = []

    async def ask(self, request):
        self.requests.append(request)
        reply = self.replies[request.purpose, request.subject]
        if isinstance(reply, Failure):
            return Reply("", None, 9, 0, 0.0, failure=reply)
        return Reply("", {request.purpose: reply}, 9, 9, 0.0)

    async def ask_all(self, requests):
        return [await self.ask(request) for request in requests]

    def count(self, text):
        return len(text.split())


def by_model(model, texts, **settings):
    return asyncio.run(extract(tuple(chunk(n, text, f"d{n}") for n, text in enumerate(texts)), model, **settings))


def test_the_model_is_asked_for_entities_and_then_for_triples_over_them():
    model = Model(
        {
            ("entities", "chunk 0"): [" Ada  Brown", "Ada Brown", ""],
            ("triples", "chunk 0"): [
                ["Ada Brown", "built ", "bridge"],
                ["Ada Brown", "built", "bridge"],
                ["", "x", "y"],
            ],
        }
    )
    found = by_model(
        model, ["Ada Brown built the bridge."], max_entities=7, max_triples=5, entity_tokens=11, triple_tokens=22
    )
    assert found == Extraction((("Ada Brown",),), ((("Ada Brown", "built", "bridge"),),), {})
    first, second = model.requests
    assert (first.purpose, first.stage, first.subject, first.max_tokens) == ("entities", "extraction", "chunk 0", 11)
    assert (second.purpose, second.stage, second.subject, second.max_tokens) == ("triples", "extraction", "chunk 0", 22)
    assert first.schema["properties"]["entities"]["maxItems"] == 7
    assert second.schema["properties"]["triples"]["maxItems"] == 5
    assert '["Ada Brown"]' in second.messages[-1].text
    # the same system text and the passage first: a runtime that keeps prefixes reads the passage once
    start = "Passage:\nAda Brown built the bridge.\n\n"
    assert first.messages[0] == second.messages[0]
    assert first.messages[-1].text.startswith(start)
    assert second.messages[-1].text.startswith(start)


def test_either_failed_call_of_a_chunk_is_recorded_and_failed_entities_still_leave_triples():
    lost = Failure("timeout", "60 s")
    model = Model(
        {
            ("entities", "chunk 0"): lost,
            ("triples", "chunk 0"): [["Ada", "is", "tall"]],
            ("entities", "chunk 1"): ["Bob"],
            ("triples", "chunk 1"): Failure("invalid_json", "no brace"),
            ("entities", "chunk 2"): lost,
            ("triples", "chunk 2"): lost,
            ("entities", "chunk 3"): [],
            ("triples", "chunk 3"): [],
        }
    )
    found = by_model(model, ["a", "b", "c", "d"])
    assert found.entities == ((), ("Bob",), (), ())
    assert found.triples == ((("Ada", "is", "tall"),), (), (), ())
    assert found.failed == {0: "timeout: 60 s", 1: "invalid_json: no brace", 2: "timeout: 60 s"}
    assert found.statistics()["failed"] == {"timeout": 2, "invalid_json": 1}
    assert found.statistics()["parse_rate"] == 0.25
    assert by_model(model, []) == Extraction((), (), {})


def test_a_passage_longer_than_the_window_is_cut_at_a_word_and_counted():
    model = Model({(purpose, f"chunk {n}"): [] for purpose in ("entities", "triples") for n in (0, 1)})
    model.window = 400
    found = by_model(model, ["word " * 600, "short"], entity_tokens=40, triple_tokens=60)
    passages = {r.subject: r.messages[1].text.split("\n\n")[0] for r in model.requests}
    kept = passages["chunk 0"].split().count("word")
    assert 0 < kept < 400 - 60
    assert passages["chunk 1"] == "Passage:\nshort"
    assert found.statistics()["cut"] == 1
    assert not found.failed
