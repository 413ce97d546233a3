"""The rule that reads a question's entities, and the converter that asks a model."""

import asyncio

import pytest

from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.pipeline.converters.entities import by_model, by_rule, given
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.mentions import mentions
from graphrag_bench.pipeline.texts import Questions


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who built the Glass Bridge?", ("Glass Bridge",)),
        ("In which city was Ada Brown born?", ("Ada Brown",)),
        (
            "Is the University of Copenhagen older than the Bank of England?",
            ("University of Copenhagen", "Bank of England"),
        ),
        ('Which film was released first, "the long night" or Casablanca?', ("the long night", "Casablanca")),
        ("Who wrote “la vie en rose” and «bel ami»?", ("la vie en rose", "bel ami")),
        ("Who sang 'hey you' on stage?", ("hey you",)),
        ("What is Ada's mother's name?", ("Ada",)),
        ("Who is Marie Curie's husband?", ("Marie Curie",)),
        ("Who was king of Norhaven in 1901?", ("Norhaven in 1901",)),  # joined over short words
        (
            "Did O'Brien meet Ángela Ruiz de la Peña, from São Paulo?",
            ("O'Brien", "Ángela Ruiz de la Peña", "São Paulo"),
        ),
        ("Where did Jean-Luc Picard live?", ("Jean-Luc Picard",)),
        ("Who founded AT&T, and who founded 3M?", ("AT&T", "3M")),
        ("Is Brask near Norhaven, or is Brask near Ulm?", ("Brask", "Norhaven", "Ulm")),
        ("What does the U.S. Senate do?", ("U.S. Senate",)),
        (
            "which river ends in the sea of glass",
            ("ends", "sea", "glass"),
        ),  # nothing capitalised: runs of content words
        ("what is it?", ()),
        ("", ()),
        ("???", ()),
        ('Is "?!" a sign?', ("sign",)),
        ("Who is X?", ("X",)),  # a single letter is no name, but it is what is left of the question
    ],
)
def test_mentions(question, expected):
    assert mentions(question) == expected


@pytest.mark.parametrize("question", ['"..."?', "'!!' or \"??\"", "“ , ”", 'Who is "  "?'])
def test_a_mention_is_never_blank_since_nothing_can_be_looked_up_by_it(question):
    assert all(name.strip() for name in mentions(question))


def test_the_rule_keeps_failures_and_questions():
    asked = Questions(("a", "b"), ("Who is Ada Brown?", "Where is Ulm?"), failed={1: "timeout: 60 s"})
    found = by_rule(asked)
    assert found.entities == (("Ada Brown",), ("Ulm",))
    assert (found.ids, found.texts, found.failed) == (asked.ids, asked.texts, asked.failed)
    assert found.read("entities") == [("Ada Brown",), ()]


def test_what_the_dataset_gives():
    asked = Questions(("a", "b", "c"), ("A?", "B?", "C?"), failed={0: "timeout: 60 s"})
    found = given(asked, GivenEntities({"a": ("Ada",), "b": ()}))
    assert found.entities == (("Ada",), (), ())
    assert found.failed == {0: "timeout: 60 s", 2: "missing: the dataset gives no entities for this question"}


class Model:
    window = 4096

    def __init__(self, replies):
        self.replies = replies
        self.requests = []

    async def ask(self, request):
        raise AssertionError("the batch is asked at once")

    async def ask_all(self, requests):
        self.requests += requests
        return [
            Reply("", None, 1, 0, 0.0, failure=reply)
            if isinstance(reply, Failure)
            else Reply("", {"entities": reply}, 1, 1, 0.0)
            for reply in self.replies
        ]

    def count(self, text):
        return len(text.split())


def test_what_the_model_says():
    asked = Questions(("a", "b", "c"), ("Who is Ada?", "B?", "C?"))
    model = Model([[" Ada ", "Ada", "", "Ulm"], Failure("timeout", "60 s"), []])
    found = asyncio.run(by_model(asked, model, max_tokens=33))
    assert found.entities == (("Ada", "Ulm"), (), ())
    assert found.failed == {1: "timeout: 60 s"}
    assert [(r.subject, r.purpose, r.stage, r.max_tokens) for r in model.requests] == [
        (identity, "entities", "question", 33) for identity in "abc"
    ]
    assert model.requests[0].messages[-1].text.endswith("Question: Who is Ada?")
