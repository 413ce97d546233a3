"""question.evidence: one text a passage, anchored there."""

import asyncio

import pyarrow as pa
import pytest

from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions, Text
from graphrag_bench.pipeline.values import Nodes
from operators.question.evidence import evidence

PASSAGES = ["The bridge is in Brask.", "Ada built it.", "word " * 400]


@pytest.fixture
def graph(small):
    plain = small.graph_of(3, [])
    object.__setattr__(plain, "nodes", pa.table({"name": ["a", "b", "c"], "text": PASSAGES}))
    return plain


def run(asking, answer, graph, rows, failed=None, window=8192, **settings):
    model = asking.model_of(answer, window)
    asked = Questions(
        tuple(f"q{n}" for n in range(len(rows))), tuple(f"question {n}?" for n in range(len(rows))), failed=failed or {}
    )
    return asyncio.run(evidence(graph, asked, model, Nodes.of_rows(rows), **settings)), model


def test_one_text_a_passage_in_rank_order(asking, graph):
    found, model = run(
        asking,
        lambda text, _: f"wanted after\n {text.split('Passage:')[1][1:4]}",
        graph,
        [([0, 1], [0.2, 0.9]), ([], [])],
    )
    assert found.rows == ((Text("wanted after Ada", 1), Text("wanted after The", 0)), ())
    assert model.asked[0].endswith("Passage:\nAda built it.\n\nQuestion: question 0?")
    cut, model = run(asking, lambda *_: "x", graph, [([0, 1], [0.2, 0.9])], top_k=1)
    assert len(cut.rows[0]) == len(model.asked) == 1


def test_a_lost_reply_searches_with_the_question_and_all_lost_fail_it(asking, graph):
    def answer(text, schema):
        if "Ada" in text:
            raise CallError("timeout", "60 s", retry=False)
        return "where Brask lies"

    rows = [([0, 1], [1.0, 0.5]), ([1], [1.0]), ([0], [1.0]), ([0], [1.0])]
    found, model = run(asking, answer, graph, rows, failed={3: "earlier"})
    assert found.rows[0] == (Text("where Brask lies", 0), Text("question 0?", 1))
    assert dict(found.failed) == {1: "timeout: 60 s"} and found.rows[1] == () and found.rows[3] == ()
    assert not any("question 3?" in text for text in model.asked)


def test_a_long_passage_is_cut_to_the_window(asking, graph):
    found, model = run(asking, lambda *_: "x", graph, [([2], [1.0])], window=300, max_tokens=20)
    assert not found.failed and "word word" in model.asked[0] and model.asked[0].endswith("Question: question 0?")
    assert model.asked[0].count("word") < 250


def test_a_batch_is_its_questions_one_by_one(asking, graph):
    def answer(text, schema):
        return text[-40:]

    rows = [([0, 1], [1.0, 0.5]), ([1], [1.0])]
    whole, _ = run(asking, answer, graph, rows)
    alone, _ = run(asking, answer, graph, rows[:1])
    assert alone.rows[0] == whole.rows[0]
