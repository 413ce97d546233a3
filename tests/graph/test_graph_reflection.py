"""Described records in full: self-reflection before gleaning rounds, claims, and few-shot examples of one's own."""

import asyncio
import json

import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.errors import UserError
from graphrag_bench.graph.claims import ClaimRecord
from graphrag_bench.graph.extraction import RichExtraction
from graphrag_bench.graph.extractors.described import calls, extract
from graphrag_bench.graph.record_prompts import claims_schema
from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.llm.structured import check_schema
from graphrag_bench.llm.window import prompt_tokens
from graphrag_bench.registry import REGISTRY

YES, NO = {"missing": "yes"}, {"missing": "no"}
LOST = Failure("timeout", "60 s")


def records(*names):
    entities = [{"name": name, "type": "person", "description": f"{name} is known."} for name in names]
    return {"entities": entities, "relations": []}


def claim(subject, description, **more):
    fields = {"object": "", "type": "fraud", "status": "true", "start": "", "end": "", "source": ""}
    return {"subject": subject, "description": description, **fields, **more}


class Model:
    """Answers the calls of each purpose one after the other; keeps what it was asked. A token is a word."""

    concurrency = 1

    def __init__(self, window=8192, **replies):
        self.window = window
        self.replies = {purpose: list(said) for purpose, said in replies.items()}
        self.asked = []

    async def ask(self, request):
        self.asked.append(request)
        check_schema(request.schema)
        assert prompt_tokens(request.messages, self.count) + request.max_tokens <= self.window
        reply = self.replies[request.purpose].pop(0)
        if isinstance(reply, Failure):
            return Reply("", None, 1, 0, 0.0, failure=reply)
        return Reply(json.dumps(reply), reply, 1, 1, 0.0)

    def count(self, text):
        return len(text.split())

    @property
    def purposes(self):
        return [request.purpose for request in self.asked]


def found_by(model, text="a text", **options):
    return asyncio.run(extract((Chunk(0, text, "", ("d",), 2),), model, **options))


def names(found):
    return [entity.name for entity in found.entities[0]]


# -- self-reflection --


def test_before_every_round_the_model_must_say_whether_anything_is_missing_and_a_no_ends_them():
    model = Model(records=[records("A")], reflection=[YES, NO], gleaning=[records("B"), records("C")])
    assert names(found_by(model, gleaning=3, reflect="before")) == ["A", "B"]
    assert model.purposes == ["records", "reflection", "gleaning", "reflection"]
    asked = model.asked[1]
    assert asked.schema["properties"] == {"missing": {"enum": ["yes", "no"]}} and asked.max_tokens <= 16
    assert "yes or no" in asked.messages[-1].text


def test_between_rounds_the_first_is_always_made():
    model = Model(records=[records("A")], reflection=[NO], gleaning=[records("B"), records("C")])
    assert names(found_by(model, gleaning=3, reflect="between")) == ["A", "B"]
    assert model.purposes == ["records", "gleaning", "reflection"]


def test_the_question_is_asked_aside_so_that_the_rounds_prompts_are_those_without_it():
    replies = {"records": [records("A")], "gleaning": [records("B"), records("C")]}
    plain, reflecting = Model(**replies), Model(**replies, reflection=[YES, YES])
    assert found_by(plain, gleaning=2) == found_by(reflecting, gleaning=2, reflect="before")
    aside = [request for request in reflecting.asked if request.purpose == "reflection"]
    assert [request for request in reflecting.asked if request.purpose != "reflection"] == plain.asked
    for request, after in zip(aside, plain.asked[1:], strict=True):  # what it shares with the round stands first
        assert request.messages[:-1] == after.messages[:-1]


def test_a_question_that_fails_ends_the_rounds_and_costs_nothing_else():
    model = Model(records=[records("A")], reflection=[LOST], gleaning=[records("B")])
    found = found_by(model, gleaning=1, reflect="before")
    assert names(found) == ["A"] and not found.failed


@pytest.mark.parametrize("reflect", ["none", "before", "between"])
@pytest.mark.parametrize("claims", [False, True])
def test_no_prompt_is_longer_than_the_window(reflect, claims):
    replies = {"records": [records("A")], "gleaning": [records(f"N{n}") for n in range(3)]}
    model = Model(window=1500, **replies, reflection=[YES] * 3, claims=[{"claims": []}])
    options = {"record_tokens": 20, "gleaning_tokens": 12, "claim_tokens": 30}
    found = found_by(model, "word " * 3000, gleaning=3, reflect=reflect, claims=claims, **options)
    assert found.cut == 1 and len(names(found)) == 4


def test_the_estimate_counts_what_is_asked_at_most():
    component = REGISTRY.get("extractor", "described")
    defaults = {setting.name: setting.default for setting in component.settings.values()}
    scale = Scale(chunks=10, tokens=1000)

    def asked(**options) -> Calls:
        return calls({**defaults, **options}, scale)

    assert (asked(gleaning=0).calls, asked(gleaning=2).calls) == (10, 30)
    assert (asked(gleaning=2, reflect="before").calls, asked(gleaning=2, reflect="between").calls) == (50, 40)
    assert asked(gleaning=1).bound == "" and asked(gleaning=1, reflect="before").bound == "at most"
    assert asked(gleaning=1, claims=True).calls == 30
    assert asked(gleaning=0, claims=True).reply_tokens > asked(gleaning=0).reply_tokens


# -- claims --


def test_claims_are_asked_for_last_in_a_chat_of_their_own_about_the_names_found_and_kept_by_chunk(tmp_path):
    said = [
        claim("Ada", " Ada  stole it.", object="NONE", status="suspected", start="1911-01-01", end="none"),
        claim("Ada", " Ada  stole it.", object="", status="suspected", start="1911-01-01"),
        claim("Bob", " "),
    ]
    model = Model(records=[records("Ada")], gleaning=[records("Bob")], claims=[{"claims": said}])
    found = found_by(model, gleaning=1, claims=True, claims_about="thefts alone", max_claims=5, claim_tokens=99)
    assert found.claims == ((ClaimRecord("Ada", "", "fraud", "suspected", "1911-01-01", "", "Ada stole it."),),)
    assert model.purposes == ["records", "gleaning", "claims"]
    last = model.asked[-1]
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "user"]
    assert "thefts alone" in last.messages[0].text and last.max_tokens == 99
    assert last.messages[-1].text == 'Passage:\na text\n\nNames: ["Ada", "Bob"]'
    listed = last.schema["properties"]["claims"]
    assert listed["maxItems"] == 5 and listed["items"]["properties"]["subject"] == {"enum": ["Ada", "Bob"]}
    example = json.loads(last.messages[2].text)["claims"]
    shown = claims_schema([row["subject"] for row in example], 9, 300)["properties"]["claims"]["items"]["properties"]
    assert all(row.keys() == shown.keys() and row["subject"] in last.messages[1].text for row in example)
    assert found.statistics()["claims"] == 1
    found.save(tmp_path)
    assert RichExtraction.open(tmp_path) == found


def test_claims_that_cannot_be_had_cost_the_chunk_nothing_else():
    found = found_by(Model(records=[records("A")], claims=[LOST]), gleaning=0, claims=True)
    assert names(found) == ["A"] and found.claims == ((),) and not found.failed


def test_where_nothing_is_found_no_claims_are_asked_for():
    model = Model(records=[records()])
    assert found_by(model, gleaning=0, claims=True).claims == ((),) and model.purposes == ["records"]


def test_without_claims_nothing_says_claims(tmp_path):
    found = found_by(Model(records=[records("A")]), gleaning=0)
    assert found.claims == () and "claims" not in found.statistics()
    found.save(tmp_path)
    assert RichExtraction.open(tmp_path) == found


# -- examples --


EXAMPLE = {
    "text": " Gene X binds Y. ",
    "entities": [{"name": "X", "type": "gene", "description": "X binds."}, {"name": "Y", "type": "cat", "description": "Y."}],
    "relations": [{"source": "X", "target": "Y", "description": "X binds Y.", "keywords": ["binding"], "strength": 9}],
}  # fmt: skip


def test_examples_of_ones_own_stand_in_the_place_of_ours(tmp_path):
    file = tmp_path / "shots.jsonl"
    file.write_text(f"{json.dumps(EXAMPLE)}\n\n{json.dumps({**EXAMPLE, 'text': 'Another.'})}\n")
    model = Model(records=[records("A")])
    found_by(model, gleaning=0, entity_types=["gene"], examples=str(file))
    [asked] = model.asked
    assert [message.role for message in asked.messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert [message.text for message in asked.messages[1::2]] == [
        "Passage:\nGene X binds Y.", "Passage:\nAnother.", "Passage:\na text",
    ]  # fmt: skip
    shown = json.loads(asked.messages[2].text)
    assert [entity["type"] for entity in shown["entities"]] == ["gene", "other"]
    assert "keywords" not in shown["relations"][0]
    digest = REGISTRY.get("extractor", "described").extra["inputs"]
    before = digest({"examples": str(file)})
    file.write_text(json.dumps(EXAMPLE))
    assert len({before, digest({"examples": str(file)}), digest({"examples": None})}) == 3


@pytest.mark.parametrize(
    ("written", "said"),
    [("{", "shots.jsonl:1: no example"), ('{"text": "t", "entities": []}', "relations"), ("\n", "holds no example")],
)
def test_faults_of_a_file_of_examples(tmp_path, written, said):
    file = tmp_path / "shots.jsonl"
    file.write_text(written)
    with pytest.raises(UserError, match=said):
        found_by(Model(), examples=str(file))
    with pytest.raises(UserError, match="no file"):
        found_by(Model(), examples=str(tmp_path / "nowhere"))


def test_a_passage_cut_for_the_claims_alone_is_counted_once():
    model = Model(records=[records("A")], claims=[{"claims": [claim("A", "It burned.")]}], window=2000)
    found = found_by(model, gleaning=0, claims=True, text="word " * 600, record_tokens=100, claim_tokens=1300)
    assert model.asked[0].messages[-1].text.split().count("word") == 600
    assert model.asked[1].messages[-1].text.split().count("word") < 600
    assert found.statistics()["cut"] == 1
