"""The solver of steps: question.plan, step, deduce and reflect."""

import asyncio

import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions, Text, Texts
from graphrag_bench.pipeline.values import Chunks, Relationships
from operators._steps import answer_of, filled, note, tidy
from operators.question.deduce import deduce
from operators.question.plan import plan
from operators.question.reflect import reflect
from operators.question.start import start
from operators.question.step import step

TABLE = tuple(Chunk(n, f"passage {n} of Brask", "", (f"d{n}",), 4) for n in range(4))


def asked(count, failed=None, **columns):
    return Questions(
        tuple(f"q{n}" for n in range(count)),
        tuple(f"question {n}?" for n in range(count)),
        **columns,
        failed=failed or {},
    )


def texts(*rows):
    return Texts([tuple(Text(text) for text in row) for row in rows])


def said(value):
    return [[text for text, _ in row] for row in value]


def test_notes_hold_answers_that_later_steps_name():
    notes = [note(1, "Who built it?", "Ada  Brown"), note(2, "Where -> was #1 born?", "unknown.")]
    assert [text for text, _ in notes] == ["#1 Who built it? -> Ada Brown", "#2 Where was #1 born? -> unknown."]
    assert answer_of(notes[0].text) == "Ada Brown"
    assert (
        filled("When did #1 die in #2, and #3, #0?", notes)
        == "When did Ada Brown die in Where was #1 born, and #3, #0?"
    )
    assert tidy([" a\nb ", "a b", "", "c", "#1?"], ["c"]) == ["a b"]


def test_a_plan_is_steps(asking):
    def answer(text, schema):
        if "question 1?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return {"steps": ["#1"] if "question 2?" in text else ["Who?", " Where is #1? ", "Who?"]}

    model = asking.model_of(answer)
    found = asyncio.run(plan(asked(4, {3: "earlier"}), model, max_steps=3))
    assert said(found) == [["Who?", "Where is #1?"], ["question 1?"], ["question 2?"], []]
    assert dict(found.failed) == {1: "timeout: 60 s"} and len(model.asked) == 3
    model = asking.model_of(answer)
    found = asyncio.run(plan(asked(2, {1: "earlier"}), model, planner="none"))
    assert said(found) == [["question 0?"], []] and not model.asked
    assert said(start(asked(2))) == [[], []]


def test_the_next_open_step_is_the_wording():
    steps = texts(["Who built the Glass Bridge?", "Where was #1 born?"], ["one?"], ["question 2?"], [])
    notes = texts(["#1 Who built the Glass Bridge? -> Ada Brown"], ["#1 one? -> Ulm"], [], [])
    found = step(asked(4, entities=(("x",), ("x",), ("kept",), ("y",)), low=("l",) * 4), steps, notes)
    assert found.texts == ("Where was Ada Brown born?", "one?", "question 2?", "question 3?")
    assert found.entities[0] == ("Ada Brown",) and found.entities[2] == ("kept",) and found.entities[3] == ("y",)
    assert found.low is None and found.ids == ("q0", "q1", "q2", "q3")
    assert step(asked(1), texts(["Who was Ada Brown?"]), texts([])).entities == (("Ada Brown",),)


def solve(asking, answer, steps, notes, rows, facts=None, **settings):
    model = asking.model_of(answer)
    graph = asking.told([("Ada", "built", "Bridge"), ("Ulm", "is", "river")])
    linked = None if facts is None else Relationships.of_rows(facts)
    made = deduce(graph, asked(len(rows)), model, TABLE, steps, notes, Chunks.of_rows(rows), linked, **settings)
    return asyncio.run(made), model


def test_a_step_is_answered_from_facts_and_passages(asking):
    steps, notes = texts(["a?", "b?"], ["a?"], ["a?"]), texts(["#1 a? -> x"], [], ["#1 a? -> z"])
    rows, facts = [([2, 1], [0.9, 0.5]), ([], []), ([0], [1.0])], [([0], [1.0]), ([], []), ([], [])]
    found, model = solve(asking, lambda text, schema: {"answer": " Ada\nBrown "}, steps, notes, rows, facts, top_k=1)
    assert said(found.notes) == [
        ["#1 a? -> x", "#2 question 0? -> Ada Brown"],
        ["#1 question 1? -> unknown"],
        ["#1 a? -> z"],
    ]
    assert found.done.rows == (True, True, True)
    assert len(model.asked) == 1  # nothing was found for the second, and the third has no open step
    assert model.asked[0].endswith(
        "Facts:\n- Ada -> built -> Bridge\n\nPassages:\n- passage 2 of Brask\n\nQuestion: question 0?"
    )
    found, model = solve(asking, lambda *_: "", steps, notes, rows, facts, solver="none")
    assert said(found.notes)[0] == ["#1 a? -> x", "#2 question 0? -> unknown"] and not model.asked


def test_a_lost_answer_costs_one_question(asking):
    def answer(text, schema):
        if "question 0?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return {"answer": "Ulm"}

    found, _ = solve(asking, answer, texts(["a?"], ["a?", "b?"]), texts([], []), [([0], [1.0])] * 2)
    assert dict(found.notes.failed) == dict(found.done.failed) == {0: "timeout: 60 s"}
    assert said(found.notes)[1] == ["#1 question 1? -> Ulm"] and found.done.rows[1] is False


@pytest.mark.parametrize(("reply", "steps", "done"), [
    ({"enough": "yes"}, ["a?"], True),
    ({"enough": "no", "steps": ["When was #1?", "a?"]}, ["a?", "When was #1?"], False),
    ({"enough": "no", "steps": ["a?"]}, ["a?"], True),
])  # fmt: skip
def test_a_reflection_adds_the_steps_that_are_missing(asking, reply, steps, done):
    model = asking.model_of(lambda *_: reply)
    found = asyncio.run(reflect(asked(2), model, texts(["a?"], ["a?", "b?"]), texts(["#1 a? -> x"], ["#1 a? -> x"])))
    assert said(found.steps) == [steps, ["a?", "b?"]] and found.done.rows == (done, False)
    assert len(model.asked) == 1 and model.asked[0].endswith("Notes:\n- #1 a? -> x\n\nQuestion: question 0?")


def test_without_reflection_every_plan_is_the_last(asking):
    model = asking.model_of(lambda *_: "")
    found = asyncio.run(reflect(asked(1), model, texts(["a?"]), texts([]), reflection="none"))
    assert said(found.steps) == [["a?"]] and found.done.rows == (True,) and not model.asked
