"""question.thought: the next query, and whether it answers."""

import asyncio

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from operators.question.thought import thought

TABLE = tuple(Chunk(n, f"passage {n} of Brask", "", (f"d{n}",), 4) for n in range(4))


def run(asking, answer, rows, failed=None, **settings):
    model = asking.model_of(answer)
    asked = Questions(
        tuple(f"q{n}" for n in range(len(rows))),
        tuple(f"question {n}?" for n in range(len(rows))),
        entities=(("x",),) * len(rows),
        low=("l",) * len(rows),
        failed=failed or {},
    )
    return asyncio.run(thought(asked, model, Chunks.of_rows(rows), TABLE, **settings)), model


def test_the_thought_is_the_next_query_with_its_entities(asking):
    def answer(text, schema):
        return "So the ANSWER is: Ada Brown" if "question 1?" in text else " The bridge was built by\nAda Brown. "

    found, model = run(asking, answer, [([2, 1], [0.5, 0.9]), ([0], [1.0])], top_k=2)
    assert found.questions.ids == ("q0", "q1") and found.questions.low is None
    assert found.questions.texts == ("The bridge was built by Ada Brown.", "So the ANSWER is: Ada Brown")
    assert found.questions.read("entities")[0] == ("Ada Brown",)
    assert found.done.rows == (False, True)
    assert model.asked[0].endswith("Passages:\n- passage 1 of Brask\n- passage 2 of Brask\n\nQuestion: question 0?")
    _, model = run(asking, answer, [([2, 1], [0.5, 0.9])], top_k=1)
    assert "passage 2" not in model.asked[0]


def test_what_fails_costs_one_question(asking):
    def answer(text, schema):
        if "question 0?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return "Ada Brown did."

    found, model = run(asking, answer, [([0], [1.0]), ([0], [1.0]), ([], []), ([0], [1.0])], failed={3: "earlier"})
    assert dict(found.questions.failed) == {0: "timeout: 60 s", 3: "earlier"}
    assert dict(found.done.failed) == {0: "timeout: 60 s"}
    assert found.questions.texts == ("question 0?", "Ada Brown did.", "question 2?", "question 3?")
    assert found.done.rows == (False, False, True, True) and len(model.asked) == 2
