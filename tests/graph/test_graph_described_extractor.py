"""Described records: what a model says of a chunk, and what it says when asked for more."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.graph.extractors import llm
from graphrag_bench.graph.extractors.described import extract
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.llm.service import Chat
from graphrag_bench.llm.window import prompt_tokens

NOTHING = {"entities": [], "relations": []}


def chunks(*texts):
    return tuple(Chunk(n, text, "", (f"d{n}",), len(text.split())) for n, text in enumerate(texts))


def entity(name, type="person", description=None):
    return {"name": name, "type": type, "description": description or f"{name} is known."}


def relation(source, target, description="They met.", strength=5, **more):
    return {"source": source, "target": target, "description": description, "strength": strength, **more}


def records(entities=(), relations=()):
    return {"entities": list(entities), "relations": list(relations)}


class Model:
    """Answers a chunk's calls one after the other; keeps what it was asked."""

    window = 4096
    concurrency = 2

    def __init__(self, *replies, truncated=False):
        self.replies = [list(row) for row in replies]
        self.requests = []
        self.truncated = truncated

    async def ask(self, request):
        self.requests.append(request)
        await asyncio.sleep(0)
        reply = self.replies[int(request.subject.removeprefix("chunk "))].pop(0)
        if isinstance(reply, Failure):
            return Reply("", None, 9, 0, 0.0, failure=reply)
        return Reply(f"text {json.dumps(reply)}", reply, 9, 9, 0.0, truncated=self.truncated)

    async def ask_all(self, requests):
        return [await self.ask(request) for request in requests]

    def count(self, text):
        return len(text.split())


def found_by(model, *texts, **options):
    return asyncio.run(extract(chunks(*texts), model, **options))


def test_a_chunk_gives_its_records_tidied_and_the_model_is_asked_once_with_the_schema():
    said = records(
        [entity(" Ada  Brown", "person", " An  engineer.\n"), entity("Ulm", "location", "A town.")],
        [relation("Ada Brown", "Ulm ", " Ada Brown lives in  Ulm.", 7)],
    )
    model = Model([said])
    found = found_by(model, "Ada Brown lives in Ulm.", gleaning=0, max_entities=7, max_relations=5, record_tokens=99)
    assert found == RichExtraction(
        ((EntityRecord("Ada Brown", "person", "An engineer."), EntityRecord("Ulm", "location", "A town.")),),
        ((RelationRecord("Ada Brown", "Ulm", "", "Ada Brown lives in Ulm.", (), 7.0),),),
    )
    [asked] = model.requests
    assert (asked.stage, asked.purpose, asked.subject, asked.max_tokens) == ("extraction", "records", "chunk 0", 99)
    lists = asked.schema["properties"]
    assert (lists["entities"]["maxItems"], lists["relations"]["maxItems"]) == (7, 5)
    assert lists["entities"]["items"]["properties"]["type"]["enum"][-2:] == ["event", "other"]
    assert "keywords" not in lists["relations"]["items"]["properties"]
    assert "keywords" not in "".join(message.text for message in asked.messages)


def test_what_all_chunks_share_stands_first_and_the_example_keeps_to_the_types_asked_for():
    model = Model([NOTHING], [NOTHING])
    found_by(model, "one", "two", gleaning=0, entity_types=["gene", "person", "gene"], keywords=True)
    first, second = model.requests
    assert first.messages[:-1] == second.messages[:-1]
    assert [m.text for m in (first.messages[-1], second.messages[-1])] == ["Passage:\none", "Passage:\ntwo"]
    assert [message.role for message in first.messages] == ["system", "user", "assistant", "user"]
    assert "gene, person, other" in first.messages[0].text
    shown = json.loads(first.messages[2].text)
    assert {entity["type"] for entity in shown["entities"]} == {"person", "other"}
    assert all(relation["keywords"] for relation in shown["relations"])
    assert first.schema["properties"]["relations"]["items"]["properties"]["keywords"]["minItems"] == 1


def test_a_round_goes_on_in_the_same_chat_and_adds_what_is_new():
    first = records([entity("Ada"), entity("Bob", description="first")], [relation("Ada", "Bob")])
    second = records(
        [entity("ADA", description="other"), entity("Cy")], [relation("ada", "BOB", "they met."), relation("Cy", "Ada")]
    )
    model = Model([first, second, NOTHING])
    found = found_by(model, "text", gleaning=2, gleaning_tokens=44)
    assert [record.name for record in found.entities[0]] == ["Ada", "Bob", "Cy"]
    assert found.entities[0][0].description == "Ada is known."
    assert [(r.source, r.target) for r in found.relations[0]] == [("Ada", "Bob"), ("Cy", "Ada")]
    assert [r.purpose for r in model.requests] == ["records", "gleaning", "gleaning"]
    start, more, last = model.requests
    assert more.messages[: len(start.messages)] == start.messages
    assert [m.role for m in more.messages[len(start.messages) :]] == ["assistant", "user"]
    assert more.messages[-2].text == f"text {json.dumps(first)}"
    assert last.messages[: len(more.messages)] == more.messages
    assert last.messages[-2].text == f"text {json.dumps(second)}"
    assert (more.max_tokens, more.stage, more.subject, more.schema) == (44, "extraction", "chunk 0", start.schema)


def test_rounds_end_with_one_that_adds_nothing():
    same = records([entity("Ada")], [relation("Ada", "Ada")])
    model = Model([same, same, records([entity("never asked")])])
    assert [r.name for r in found_by(model, "text", gleaning=5).entities[0]] == ["Ada"]
    assert len(model.requests) == 2


def test_a_cut_off_reply_goes_into_the_chat_without_its_broken_end():
    said = records([entity("Øyvind")])
    model = Model([said, NOTHING], truncated=True)
    found_by(model, "text")
    assert model.requests[1].messages[-2].text == json.dumps(said, ensure_ascii=False)


def test_only_a_failed_first_call_is_a_failed_chunk():
    lost = Failure("timeout", "60 s")
    kept = records([entity("Ada")])
    model = Model([lost], [kept, lost], [kept, records([entity("Bob")]), lost])
    found = found_by(model, "a", "b", "c", gleaning=3)
    assert found.failed == {0: "timeout: 60 s"}
    assert [[record.name for record in row] for row in found.entities] == [[], ["Ada"], ["Ada", "Bob"]]
    assert found.statistics()["parse_rate"] == round(2 / 3, 4)
    assert found_by(Model()) == RichExtraction((), ())


def test_an_end_that_is_no_entity_becomes_one_and_what_names_nothing_is_dropped():
    said = records(
        [entity("Ada"), entity("  ")],
        [relation("ada", "Lower Esk"), relation("Bob", "lower esk", "Bob saw it."), relation(" ", "Ada")],
    )
    found = found_by(Model([said]), "text", gleaning=0)
    assert found.entities[0] == (
        EntityRecord("Ada", "person", "Ada is known."),
        EntityRecord("Lower Esk"),
        EntityRecord("Bob"),
    )
    assert [(r.source, r.target) for r in found.relations[0]] == [("ada", "Lower Esk"), ("Bob", "lower esk")]


def test_strength_is_held_within_its_bounds_and_keywords_stand_once_each():
    said = records(
        [],
        [
            relation("a", "b", strength=-3, keywords=["x", " x ", "y  z"]),
            relation("a", "c", strength=99, keywords=[" "]),
            relation("a", "d", strength=10, keywords=["Ä"]),
        ],
    )
    found = found_by(Model([said]), "text", gleaning=0, keywords=True)
    assert [(r.strength, r.keywords) for r in found.relations[0]] == [(1.0, ("x", "y z")), (10.0, ()), (10.0, ("Ä",))]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Short.", "Short."),
        ("It fell. It rose. And th", "It fell. It rose."),
        ("no end in these words here", "no end in these words"),
        ("x" * 24, "x" * 24),
        ("東京は首都である。大阪は西にある。京都は古い都で、多", "東京は首都である。大阪は西にある。"),
    ],
)
def test_a_description_stopped_at_its_bound_ends_with_a_whole_sentence_or_word(said, kept):
    found = found_by(Model([records([entity("Ada", description=said)])]), "text", gleaning=0, description_chars=24)
    assert found.entities[0][0].description == kept


def test_a_passage_longer_than_the_window_is_cut_at_a_word_and_every_call_fits():
    model = Model([NOTHING, NOTHING], [records([entity("Ada")]), NOTHING])
    model.window = 700
    found = found_by(model, "word " * 900, "short", record_tokens=80, gleaning_tokens=40)
    long = next(r for r in model.requests if r.subject == "chunk 0")
    kept = long.messages[-1].text.split().count("word")
    assert 0 < kept < 620
    assert prompt_tokens(long.messages, model.count) <= model.window - 80 - 40
    assert found.statistics()["cut"] == 1
    assert not found.failed


def test_order_of_replies_does_not_matter_and_rows_follow_the_chunks():
    rows = [[records([entity(f"n{number}")]), NOTHING] for number in range(7)]
    one, many = Model(*rows), Model(*rows)
    one.concurrency, many.concurrency = 1, 5
    texts = [f"text {number}" for number in range(7)]
    assert found_by(one, *texts) == found_by(many, *texts)
    assert [row[0].name for row in found_by(Model(*rows), *texts).entities] == [f"n{number}" for number in range(7)]


NAMES = st.sampled_from(["Ada", "ada", "Øst", "  ", "東京", "Bob  B"])
SAID = st.fixed_dictionaries(
    {
        "entities": st.lists(st.builds(entity, NAMES), max_size=5),
        "relations": st.lists(
            st.builds(relation, NAMES, NAMES, st.sampled_from(["x", "X", "y"]), st.integers(-5, 20)), max_size=5
        ),
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(SAID, min_size=1, max_size=4))
def test_records_stand_once_each_and_every_end_is_an_entity(replies):
    found = found_by(Model([*replies, NOTHING]), "text", gleaning=len(replies))
    names = [record.name.casefold() for record in found.entities[0]]
    assert len(names) == len(set(names))
    assert all(name.strip() for name in names)
    stated = [(r.source.casefold(), r.target.casefold(), r.description.casefold()) for r in found.relations[0]]
    assert len(stated) == len(set(stated))
    assert {end for row in stated for end in row[:2]} <= set(names)
    assert all(1 <= r.strength <= 10 for r in found.relations[0])


def test_described_records_cost_more_than_names_and_triples_and_keywords_cost_no_less():
    """Kinds of graph cost as they should: KG below TKG, TKG not above RKG."""
    text = "Ada Brown built the Glass Bridge over the River Isken in 1904. Bob Fell opened it. It links Ulm and Tarn."
    spent = []
    for run in (
        lambda model: llm.extract(chunks(text, text[::-1]), model),
        lambda model: extract(chunks(text, text[::-1]), model),
        lambda model: extract(chunks(text, text[::-1]), model, keywords=True),
    ):
        chat = Chat(Scripted())
        assert not asyncio.run(run(chat)).failed
        totals = chat.ledger.totals()
        spent.append(totals.prompt_tokens + totals.completion_tokens)
    assert spent[0] < spent[1] <= spent[2]
