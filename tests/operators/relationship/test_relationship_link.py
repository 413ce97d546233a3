"""relationship.link, similar and filter: facts near the question, ranked and chosen."""

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index.vectors import RelationshipVectors
from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from operators.relationship.filter import keep
from operators.relationship.link import link
from operators.relationship.similar import similar

FACTS = [("Ada", "built", "Bridge"), ("Ulm", "is", "river"), ("Mill", "burned in", "1901")]


def lent(small, graph, seed, questions):
    """Random vectors for the relationships of a graph and for the questions."""
    rng = np.random.default_rng(seed)
    table = small.Table({text: rng.normal(size=5) for text in questions.texts})
    matrix = rng.normal(size=(graph.n_relationships, 5)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    cosines = matrix.astype(np.float64) @ table.embed(questions.texts).astype(np.float64).T
    return RelationshipVectors(matrix, table), cosines.T


@settings(deadline=None)
@given(seed=st.integers(0, 300), top_k=st.integers(1, 6))
def test_link_scores_by_the_range_over_all_facts(small, seed, top_k):
    graph = small.random_graph(seed)
    asked = Questions(("a", "b", "c"), ("one", "two", "three"), failed={2: "earlier"})
    vectors, cosines = lent(small, graph, seed, asked)
    found = link(graph, asked, vectors, top_k=top_k)
    for row, scores in zip(list(found)[:2], cosines, strict=False):
        of_facts = {fact: scores[fact] for fact in graph.facts.tolist()}
        low, high = min(of_facts.values(), default=0), max(of_facts.values(), default=0)
        wanted = {fact: (score - low) / (high - low) if high - low > 1e-6 else 1.0 for fact, score in of_facts.items()}
        assert small.pairs(row) == [
            (fact, pytest.approx(score, abs=1e-4)) for fact, score in small.ranked(wanted, top_k)
        ]
    assert len(found.row(2).ids) == 0
    alone = link(graph, asked.take([1]), vectors, top_k=top_k).row(0)
    assert small.pairs(alone) == small.pairs(found.row(1))


@settings(deadline=None)
@given(seed=st.integers(0, 300))
def test_similar_ranks_what_is_given_and_nothing_else(small, seed):
    graph = small.random_graph(seed)
    asked = Questions(("a", "b", "c"), ("one", "two", "three"), failed={2: "earlier"})
    vectors, cosines = lent(small, graph, seed, asked)
    rows = small.random_rows(seed, graph.n_relationships)[:3]
    found = similar(asked, vectors, Relationships.of_rows(rows), top_k=4)
    for row, given_row, scores in zip(list(found)[:2], rows, cosines, strict=False):
        wanted = {fact: round(scores[fact], 6) for fact in small.naive(given_row)}
        assert small.pairs(row) == [(fact, pytest.approx(score, abs=2e-6)) for fact, score in small.ranked(wanted, 4)]


def run(asking, answer, rows, failed=None, **settings):
    model = asking.model_of(answer)
    asked = Questions(
        tuple(map(str, range(len(rows)))), tuple(f"question {n}?" for n in range(len(rows))), failed=failed or {}
    )
    made = keep(asking.told(FACTS), asked, model, Relationships.of_rows(rows), **settings)
    return asyncio.run(made), model


def test_the_model_keeps_facts_with_their_scores(asking, small):
    def answer(text, schema):
        lines = schema["properties"]["facts"]["items"]["enum"]
        return {"facts": [] if "question 1?" in text else [lines[-1], lines[0], lines[0]]}

    found, model = run(asking, answer, [([0, 1, 2], [0.9, 0.5, 0.1]), ([1], [1.0]), ([], [])])
    assert [small.pairs(row) for row in found] == [[(0, 0.9), (2, 0.1)], [], []]
    assert len(model.asked) == 2 and not found.failed
    assert model.asked[0].endswith(
        "Facts:\n- Ada -> built -> Bridge\n- Ulm -> is -> river\n- Mill -> burned in -> 1901\n\nQuestion: question 0?"
    )
    _, model = run(asking, answer, [([0, 1, 2], [0.9, 0.5, 0.1])], top_k=1)
    assert "Ulm" not in model.asked[0]


def test_without_a_model_the_best_are_kept_unasked(asking, small):
    found, model = run(asking, lambda *_: "", [([0, 1, 2], [0.9, 0.5, 0.1]), ([], [])], filter="none", top_k=2)
    assert [small.pairs(row) for row in found] == [[(0, 0.9), (1, 0.5)], []] and not model.asked


def test_a_lost_reply_costs_one_question(asking, small):
    def answer(text, schema):
        if "question 0?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return {"facts": schema["properties"]["facts"]["items"]["enum"]}

    found, model = run(asking, answer, [([0], [1.0]), ([1], [1.0]), ([2], [1.0])], failed={2: "earlier"})
    assert dict(found.failed) == {0: "timeout: 60 s"}
    assert [small.pairs(row) for row in found] == [[], [(1, 1.0)], []] and len(model.asked) == 2
