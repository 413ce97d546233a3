"""Direct answers: what is asked, what is taken out of the reply, and that a failure is never an empty answer."""

import asyncio

import pytest

from graphrag_bench.generation.answers import Answer, Context
from graphrag_bench.generation.direct import direct, instruction, overhead
from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.pipeline.texts import Questions


class Model:
    window = 4096

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    async def ask(self, request):
        return (await self.ask_all([request]))[0]

    async def ask_all(self, requests):
        self.requests += requests
        return [
            Reply("half a", None, 1, 0, 0.0, failure=reply)
            if isinstance(reply, Failure)
            else Reply(reply, None, 1, 1, 0.0)
            for reply in (self.replies.pop(0) for _ in requests)
        ]

    def count(self, text):
        return len(text.split())


def answers(model, *texts, contexts=None, failed=None, **settings):
    questions = Questions(tuple("abcdef"[: len(texts)]), texts, failed=failed or {})
    given = contexts or tuple(Context("") for _ in texts)
    return asyncio.run(direct(questions, given, model, **settings))


def only(reply, **settings):
    (answer,) = answers(Model(reply), "Who?", **settings)
    return answer


def test_the_reply_is_the_answer():
    assert only(" Ada Brown\n") == Answer("a", "ok", "Ada Brown")
    assert only("Ada", contexts=(Context("[1] x", (0,), 2),)).cut == 2


def test_what_is_asked():
    model = Model("x", "y")
    answers(model, "Who built it?", "When?", contexts=(Context("Passages:\n[1] Ada built it."), Context("")), max_tokens=17)
    first, second = model.requests
    assert (first.subject, first.stage, first.purpose, first.max_tokens, first.schema) == (
        "a",
        "answer",
        "answer",
        17,
        None,
    )
    assert [turn.role for turn in first.messages] == ["system", "user"]
    text = first.messages[1].text
    assert text.index("[1] Ada built it.") < text.index("Who built it?")  # the context first: it is what can be shared
    assert "Passages" in text
    assert "Passages" not in second.messages[1].text
    assert first.messages[0] != second.messages[0]


def test_settings_change_what_the_model_is_told():
    told = {
        instruction(short_answer=short, reasoning=reasoning, may_refuse=refuse)
        for short in (True, False)
        for reasoning in (True, False)
        for refuse in (True, False)
    }
    assert len(told) == 8
    for short in (True, False):
        assert "unanswerable" in instruction(short_answer=short, reasoning=False, may_refuse=True)
        assert "unanswerable" not in instruction(short_answer=short, reasoning=False, may_refuse=False)
        assert "Answer:" in instruction(short_answer=short, reasoning=True, may_refuse=False)


@pytest.mark.parametrize(
    "settings",
    [
        {"short_answer": s, "reasoning": r, "may_refuse": f}
        for s in (True, False)
        for r in (True, False)
        for f in (True, False)
    ],
)
def test_the_overhead_covers_what_a_prompt_has_beside_context_and_question(settings):
    model = Model("x", "x")
    answers(model, "who", "who", contexts=(Context("context"), Context("")), **settings)
    counted = overhead(settings, model.count)
    for request, inside in zip(model.requests, (2, 1), strict=True):  # the words of context and question
        beside = sum(model.count(turn.text) for turn in request.messages) - inside
        assert counted + 2 * 16 >= beside  # the planner of contexts adds sixteen a turn


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("She built it in 1901.\nAnswer: Ada Brown", "Ada Brown"),
        ("**Answer:** Ada Brown", "Ada Brown"),
        ("answer : Ada", "Ada"),
        ("Answer： 北京", "北京"),
        ("Answer: Bob? No.\nAnswer: Ada", "Ada"),
        ("Answer: Ada. I hope this answer helps.", "Ada. I hope this answer helps."),
        ("The answer is not said at once. Answer: Ada\nBrown", "Ada\nBrown"),
        ("Answer: Ada\nAnswer:", "Ada\nAnswer:"),  # cut before it was said again
        ("Only thoughts, cut", "Only thoughts, cut"),
        ("İİİ thinks. Answer: Ada", "Ada"),
    ],
)
def test_with_reasoning_the_answer_is_what_follows_the_last_mark(reply, text):
    answer = only(reply, reasoning=True)
    assert (answer.status, answer.text, answer.raw) == ("ok", text, reply)


def test_without_reasoning_nothing_is_taken_out():
    answer = only("Answer: Ada")
    assert (answer.text, answer.raw) == ("Answer: Ada", "")


@pytest.mark.parametrize(
    ("reply", "settings"),
    [
        ("unanswerable", {"may_refuse": True}),
        ("I don't know.", {}),
        ("Nothing says so. Answer: Unanswerable.", {"reasoning": True}),
    ],
)
def test_a_refusal_is_a_status_and_keeps_its_words(reply, settings):
    answer = only(reply, **settings)
    assert answer.status == "refused"
    assert answer.text


def test_a_failure_is_a_status_with_its_reason_and_never_an_empty_text():
    model = Model("Ada", Failure("timeout", "60 s"), "Bob")
    found = answers(model, "A?", "B?", "C?", "D?", failed={1: "empty: no reply"})
    assert found == (
        Answer("a", "ok", "Ada"),
        Answer("b", "failed", None, "empty: no reply"),  # failed before: not asked
        Answer("c", "failed", None, "timeout: 60 s", "half a"),
        Answer("d", "ok", "Bob"),
    )
    assert [request.subject for request in model.requests] == ["a", "c", "d"]
    assert answers(Model(), "A?", failed={0: "x"}) == (Answer("a", "failed", None, "x"),)
    assert answers(Model()) == ()
