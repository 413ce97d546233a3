"""Running a plan: failures are carried, a step that fails fails its batch and nobody else's, joins and tuples flow."""

import asyncio
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.execute import convert, query_texts, retrieve
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Nodes

ASKED = Questions(("a", "b", "c"), ("A?", "B?", "C?"), failed={1: "timeout: 60 s"})


class Hits(NamedTuple):
    nodes: Nodes
    chunks: Chunks


def first(questions: Questions, *, score: float = 1.0) -> Chunks:
    return Chunks.of_rows(
        [([0, 1], [score, score / 2]) if row not in questions.failed else ([], []) for row in range(len(questions))]
    )


async def second(questions: Questions) -> Chunks:
    await asyncio.sleep(0)
    return Chunks.of_rows([([1, 2], [2.0, 1.0])] * len(questions), {2: "empty: no reply"})


def refuses(questions: Questions, chunks: Chunks) -> Chunks:
    raise OperatorFailure("no")


def refuses_both(questions: Questions) -> Hits:
    raise OperatorFailure("never")


def both(questions: Questions) -> Hits:
    return Hits(
        Nodes.of_rows([([3], [1.0])] * len(questions)), Chunks.of_rows([([4], [1.0])] * len(questions), {0: "empty: x"})
    )


def passed(chunks: Chunks) -> Chunks:
    return Chunks.of_rows(list(chunks))


def reworded(questions: Questions) -> Questions:
    return replace(questions, texts=tuple(f"{text} really" for text in questions.texts))


def length(questions: Questions) -> Chunks:
    return Chunks.of_rows([([len(text)], [1.0]) for text in questions.texts])


@pytest.fixture
def run(planner, registered):
    for call in (first, second, refuses, refuses_both, both, passed, reworded, length):
        registered(f"chunk.{call.__name__}", call)

    def values(steps, shown, questions=ASKED):
        lines = "".join(f"  {name}: {step}\n" for name, step in steps.items())
        made = planner(
            f"name: X\nretrieve:\n{lines}context: {{c: {{from: {shown}}}}}\nanswer: {{generator: direct}}\n", None
        )
        plan = made.plan()
        assert made.faults == []
        return asyncio.run(retrieve(plan, {}, questions))

    return values


def ids(value):
    return [row.ids.tolist() for row in value]


def test_a_question_that_has_failed_stays_failed_in_every_later_value(run):
    found = run(
        {
            "one": "{operator: chunk.first}",
            "two": "{operator: chunk.second}",
            "three": "{operator: chunk.passed, chunks: [one, two]}",
        },
        "three",
    )
    assert found["one"].failed == {1: "timeout: 60 s"}
    assert found["two"].failed == {1: "timeout: 60 s", 2: "empty: no reply"}
    assert found["three"].failed == {1: "timeout: 60 s", 2: "empty: no reply"}


@pytest.mark.parametrize(("rule", "scores"), [("max", {0: 1.0, 1: 2.0, 2: 1.0}), ("sum", {0: 1.0, 1: 2.5, 2: 1.0})])
def test_a_list_of_wires_is_joined(run, rule, scores):
    found = run(
        {
            "one": "{operator: chunk.first}",
            "two": "{operator: chunk.second}",
            "three": f"{{operator: chunk.passed, chunks: [one, two], join: {rule}}}",
        },
        "three",
    )
    row = found["three"].row(0)
    assert dict(zip(row.ids.tolist(), row.scores.tolist(), strict=True)) == scores
    assert row.ids.tolist() == [1, 0, 2]


def test_a_step_that_cannot_serve_the_batch_fails_every_question_with_its_reason(run):
    found = run(
        {
            "one": "{operator: chunk.first}",
            "two": "{operator: chunk.refuses, chunks: one}",
            "three": "{operator: chunk.passed, chunks: two}",
        },
        "three",
    )
    said = "operator: chunk.refuses: no"
    assert ids(found["three"]) == [[], [], []]
    # what failed before keeps its own reason
    assert found["two"].failed == found["three"].failed == {0: said, 1: "timeout: 60 s", 2: said}
    assert found["one"].failed == {1: "timeout: 60 s"}


def test_the_fields_of_a_tuple_are_kept_apart(run, registered):
    def nodes_too(nodes: Nodes, chunks: Chunks) -> Chunks:
        return chunks

    registered("chunk.nodes_too", nodes_too)
    found = run({"hits": "{operator: chunk.both}", "last": "{operator: chunk.nodes_too}"}, "last")
    assert ids(found["hits.nodes"]) == [[3]] * 3
    assert ids(found["hits.chunks"]) == [[4]] * 3
    assert found["hits.nodes"].failed == {1: "timeout: 60 s"}
    assert found["last"].failed == {0: "empty: x", 1: "timeout: 60 s"}
    failing = run({"hits": "{operator: chunk.refuses_both}", "last": "{operator: chunk.nodes_too}"}, "last")
    assert type(failing["hits.nodes"]) is Nodes
    assert ids(failing["hits.nodes"]) == ids(failing["last"]) == [[], [], []]
    assert failing["last"].failed[0] == "operator: chunk.refuses_both: never"


def test_new_questions_are_a_wire(run):
    found = run({"asked": "{operator: chunk.reworded}", "last": "{operator: chunk.length, questions: asked}"}, "last")
    assert found["asked"].texts == ("A? really", "B? really", "C? really")
    assert found["asked"].failed == {1: "timeout: 60 s"}
    assert ids(found["last"]) == [[9], [9], [9]]


def test_settings_and_their_defaults_reach_the_operator(run):
    found = run({"one": "{operator: chunk.first, score: 3.0}"}, "one")
    np.testing.assert_array_equal(found["one"].row(0).scores, [3.0, 1.5])
    assert ids(run({"one": "{operator: chunk.first}"}, "one", Questions((), ()))["one"]) == []


def test_conversion_and_the_texts_that_will_be_embedded(planner):
    page = (
        "name: X\nquestion: {entities: {by: given}}\nretrieve:\n  linked: {operator: node.link}\n  ranked: {operator: node.ppr}\n"
        "  relationships: {operator: relationship.aggregator, nodes: ranked}\n  found: {operator: chunk.aggregator}\n"
        "context: {c: {from: found}}\nanswer: {generator: direct}\n"
    )
    made = planner(page.replace("node.ppr}", "node.ppr, seeds: linked}"))
    plan = made.plan()
    assert made.faults == []
    given = GivenEntities({"a": ("Ada", "Ulm"), "b": ("Brask",)})
    questions = asyncio.run(convert(plan, {GivenEntities: given}, ASKED))
    assert questions.entities == (("Ada", "Ulm"), ("Brask",), ())
    assert questions.failed == {1: "timeout: 60 s", 2: "missing: the dataset gives no entities for this question"}
    assert query_texts(plan, questions) == ["Ada", "Ulm"]  # of what has not failed, each once
