"""Keywords of questions: by the model with scripted replies, and by rule."""

import asyncio
import json

import pytest

from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError
from graphrag_bench.llm.service import Chat
from graphrag_bench.pipeline.converters.keywords import by_model, by_rule
from graphrag_bench.pipeline.texts import Questions


def questions(*texts, failed=None):
    return Questions(tuple(f"q{n}" for n in range(len(texts))), texts, failed=failed or {})


def ask(answer, batch):
    asked = []

    def reply(messages, schema):
        asked.append((messages, schema))
        return answer(messages[1].text.rsplit("Question: ", 1)[-1])  # the last message may be a request for repair

    return asyncio.run(by_model(batch, Chat(Scripted.of(reply), attempts=1))), asked


def test_each_list_becomes_one_text():
    reply = json.dumps({"low": ["Harrow Bridge", " Brask ", "Brask"], "high": ["designer"]})
    found, asked = ask(lambda _: reply, questions("Who designed it?", "And why?"))
    assert found.low == ("Harrow Bridge, Brask",) * 2 and found.high == ("designer",) * 2
    assert found.read("low") == [("Harrow Bridge, Brask",)] * 2 and not found.failed
    assert asked[0][0][-1].text.endswith("Question: Who designed it?")
    assert all(part["maxItems"] == 8 for part in asked[0][1]["properties"].values())


def test_what_fails_costs_one_question():
    def answer(text):
        if text == "slow":
            raise CallError("timeout", "60 s", retry=False)
        empty = {"low": [], "high": []}
        return {"bad": "no JSON", "none": json.dumps(empty), "low": json.dumps({**empty, "low": ["x"]})}[text]

    found, asked = ask(answer, questions("bad", "none", "slow", "low", "was lost", failed={4: "earlier"}))
    assert found.failed[0].startswith("invalid_json") and found.failed[1].startswith("empty: ")
    assert found.failed[2] == "timeout: 60 s" and found.failed[4] == "earlier" and 3 not in found.failed
    assert found.low == ("", "", "", "x", "") and found.high == ("",) * 5
    assert found.read("high") == [()] * 5
    assert not any("was lost" in messages[-1].text for messages, _ in asked)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("Who designed the Harrow Bridge?", "Harrow Bridge", "designed"),
        ("Which company paid for Ada Brown's trip?", "Ada Brown", "company paid, trip"),
        ("Harrow Bridge?", "Harrow Bridge", "Harrow Bridge?"),
        ("what makes rivers rise?", "rivers rise", "what makes rivers rise?"),
    ],
)
def test_by_rule(text, low, high):
    found = by_rule(questions(text))
    assert (found.low, found.high) == ((low,), (high,))


def test_a_batch_by_rule_is_its_questions_one_by_one():
    texts = ("Who designed the Harrow Bridge?", "", "where?", "In which town was dvornite found?")
    whole = by_rule(questions(*texts))
    assert [whole.row(n)[3:] for n in range(4)] == [by_rule(questions(text)).row(0)[3:] for text in texts]
