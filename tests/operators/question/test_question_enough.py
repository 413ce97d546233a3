"""question.enough: yes or no on the facts found."""

import asyncio

from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.walks import Path, Subgraphs
from operators.question.enough import enough

TRIPLES = [("Bridge", "spans", "Ulm"), ("Ada", "designed", "Bridge"), ("Ada", "born in", "Pellwood")]
UP = Path((0, 2), (1,), (-1,), 0.9)
LONG = Path((0, 2, 3), (1, 2), (-1, 1), 0.5)


def run(asking, answer, rows, failed=None, window=8192):
    model = asking.model_of(answer, window)
    asked = Questions(
        tuple(f"q{n}" for n in range(len(rows))), tuple(f"question {n}?" for n in range(len(rows))), failed=failed or {}
    )
    return asyncio.run(enough(asking.told(TRIPLES), asked, model, Subgraphs(rows))), model


def test_each_fact_stands_once_and_the_reply_decides(asking):
    found, model = run(asking, lambda text, _: {"enough": "yes" if "question 0?" in text else "no"}, [[UP, LONG], [UP]])
    assert found.rows == (True, False)
    assert model.asked[0].endswith(
        "Facts:\n- Ada -> designed -> Bridge\n- Ada -> born in -> Pellwood\n\nQuestion: question 0?"
    )


def test_without_a_fact_it_is_enough_unasked(asking):
    found, model = run(asking, lambda *_: {"enough": "no"}, [[], [Path((1,))], [UP]], failed={2: "earlier"})
    assert found.rows == (True, True, True) and model.asked == []


def test_an_unreadable_reply_fails_its_question_alone(asking):
    def answer(text, schema):
        if "question 1?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return {"enough": "no"}

    found, _ = run(asking, answer, [[UP], [UP]])
    assert dict(found.failed) == {1: "timeout: 60 s"} and found.rows == (False, False)


def test_facts_beyond_the_window_are_left_out_from_the_end(asking):
    _, model = run(asking, lambda *_: {"enough": "no"}, [[UP, LONG]], window=128)
    assert "designed" in model.asked[0] and "born in" not in model.asked[0]
