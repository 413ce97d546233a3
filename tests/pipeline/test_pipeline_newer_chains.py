"""HippoRAG 2 and KAG as their pages wire them, on a corpus small enough to follow."""

import asyncio
import json

import networkx as nx
import numpy as np
import pytest

from graphrag_bench.cells import cells
from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders.kg import build
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.texts import relationship_texts
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors, RelationshipVectors
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError, ChatModel
from graphrag_bench.llm.service import Chat
from graphrag_bench.pipeline.execute import convert, retrieve
from graphrag_bench.pipeline.texts import Questions

TEXTS = (
    "Ada Brown built the Glass Bridge.",
    "The Glass Bridge spans the Ulm.",
    "Ada Brown was born in Norhaven.",
    "Norhaven has a mill.",
    "The mill burned in 1901.",
)
TRIPLES = (
    (("Ada Brown", "built", "Glass Bridge"),),
    (("Glass Bridge", "spans", "Ulm"),),
    (("Ada Brown", "born in", "Norhaven"), ("Ada Brown", "is", "engineer")),
    (("Norhaven", "has", "mill"),),
    (("mill", "burned in", "1901"),),
)
CHUNKS = tuple(Chunk(n, text, "", (f"d{n}",), 6) for n, text in enumerate(TEXTS))


def run(method, texts, answer=None, **overrides):
    """Return a method's values over the corpus for some questions, and what its model was asked."""
    page = [
        f"method={method}",
        "embedder=hashing",
        "llm=scripted",
        *(f"{key}={value}" for key, value in overrides.items()),
    ]
    (cell,), _ = cells(page)
    embedder, asked = HashingEmbedder(), []
    graph = build(CHUNKS, Extraction(((),) * len(TEXTS), TRIPLES), embedder, synonym_threshold=None)

    def reply(messages, schema):
        asked.append(messages[-1].text)
        assert answer is not None, "a model is asked"
        return json.dumps(answer(messages[-1].text, schema))

    lend = {
        Graph: graph,
        ChunkTable: CHUNKS,
        Embedder: embedder,
        ChatModel: Chat(Scripted.of(reply), attempts=1),
        NodeVectors: NodeVectors(embedder.embed(graph.column("nodes", "name")), embedder),
        RelationshipVectors: RelationshipVectors(embedder.embed(relationship_texts(graph, "auto")), embedder),
        ChunkVectors: ChunkVectors(embedder.embed(list(TEXTS)), embedder),
    }
    questions = Questions(tuple(f"q{n}" for n in range(len(texts))), tuple(texts))

    async def both():
        return await retrieve(cell.plan, lend, await convert(cell.plan, lend, questions))

    return asyncio.run(both()), graph, embedder, asked


def min_max(scores):
    return (scores - scores.min()) / (scores.max() - scores.min())


def test_hipporag_2_against_a_computation_of_its_own():
    texts = [
        "Who built the Glass Bridge?",
        "Where was the builder of the Glass Bridge born?",
        "When did the mill burn?",
    ]
    found, graph, embedder, asked = run("hipporag2", texts, **{"method.retrieve.facts.filter": "none"})
    assert not asked
    names = graph.column("nodes", "name")
    statements = [(s, r, o) for row in TRIPLES for s, r, o in row]
    chunk_of = [number for number, row in enumerate(TRIPLES) for _ in row]
    walk = nx.Graph()
    for (subject, _, object_), chunk in zip(statements, chunk_of, strict=True):
        walk.add_edge(subject, object_, weight=2.0)  # the authors' two edges a fact, and one between passage and phrase
        walk.add_edge(subject, chunk, weight=1.0)
        walk.add_edge(object_, chunk, weight=1.0)
    for row, text in enumerate(texts):
        query = embedder.embed([text], "query")[0].astype(np.float64)
        facts = min_max(embedder.embed([" ".join(fact) for fact in statements]).astype(np.float64) @ query)
        best = np.argsort(-facts, kind="stable")[:5]
        phrases = {}
        for fact in best:
            for end in (statements[fact][0], statements[fact][2]):
                chunks = {
                    chunk for fact_, chunk in zip(statements, chunk_of, strict=True) if end in (fact_[0], fact_[2])
                }
                phrases.setdefault(end, []).append(facts[fact] / len(chunks))
        means = {phrase: float(np.mean(scores)) for phrase, scores in phrases.items()}
        kept = sorted(means, key=lambda phrase: (-means[phrase], names.index(phrase)))[:5]
        dense = min_max(embedder.embed(list(TEXTS)).astype(np.float64) @ query)
        restart = {phrase: means[phrase] for phrase in kept} | {
            chunk: 0.05 * score for chunk, score in enumerate(dense)
        }
        wanted = nx.pagerank(walk, alpha=0.5, personalization=restart, tol=1e-12, max_iter=1000)
        ranked = sorted(range(len(TEXTS)), key=lambda chunk: -wanted[chunk])
        row_found = found["chunks"].row(row)
        assert row_found.ids.tolist() == ranked
        np.testing.assert_allclose(row_found.scores, [wanted[chunk] for chunk in ranked], atol=1e-5)


def test_hipporag_2_without_a_fact_that_helps_is_dense():
    texts = ["Who built the Glass Bridge?", "When did the mill burn?"]

    def answer(text, schema):
        lines = schema["properties"]["facts"]["items"]["enum"]
        return {"facts": [] if "mill burn?" in text else lines[:1]}

    found, *_, asked = run("hipporag2", texts, answer)
    assert len(asked) == 2 and [len(row.ids) for row in found["facts"]] == [1, 0]
    assert found["chunks"].row(1).ids.tolist() == found["dense"].row(1).ids.tolist()
    assert found["chunks"].row(0).ids.tolist() == found["walked"].row(0).ids.tolist()
    assert found["chunks"].row(0).ids[0] == 0


def solver(text, schema):
    """Plan the two-step question, read answers off the passages, and miss the year once."""
    asked = text.rpartition("Question: ")[2]
    if "anyOf" in schema:
        if "mill" in asked and "year" not in text:
            return {"enough": "no", "steps": ["In which year did #1 burn?"]}
        return {"enough": "yes"}
    if "steps" in schema.get("properties", ()):
        return {
            "steps": ["Who built the Glass Bridge?", "Where was #1 born?"]
            if "Bridge" in asked
            else ["What has Norhaven?"]
        }
    answers = {
        "Who built": "Ada Brown",
        "Where was Ada Brown born?": "Norhaven",
        "What has": "mill",
        "In which year": "1901",
    }
    return {"answer": next(said for start, said in answers.items() if asked.startswith(start))}


def said(value):
    return [[text for text, _ in row] for row in value]


def test_kag_answers_step_by_step_and_adds_what_reflection_misses():
    texts = ["Where was the builder of the Glass Bridge born?", "When did the mill of Norhaven burn?"]
    found, *_, asked = run("kag", texts, solver)
    assert said(found["solve.walk.solved.notes"]) == [
        ["#1 Who built the Glass Bridge? -> Ada Brown", "#2 Where was Ada Brown born? -> Norhaven"],
        ["#1 What has Norhaven? -> mill", "#2 In which year did mill burn? -> 1901"],
    ]
    assert found["solve.reviewed.done"].rows == (True, True)
    kinds = [next(word for word in ("Notes:", "Passages:", "Question:") if word in text) for text in asked]
    # two plans; a step each, and the first question's second; what is missing; the second's new step; again
    assert kinds.count("Question:") == 2 and kinds.count("Passages:") == 4 and kinds.count("Notes:") == 3
    assert {0, 2} <= set(found["solve.walk.chunks"].row(0).ids[:3].tolist())
    assert {3, 4} <= set(found["solve.walk.chunks"].row(1).ids[:3].tolist())


def test_kag_reflects_three_times_at_most():
    def never_enough(text, schema):
        count = text.count(" -> ")
        if "anyOf" in schema:
            return {"enough": "no", "steps": [f"What of mill {count}?"]}
        return {"steps": ["What has Norhaven?"]} if "steps" in schema.get("properties", ()) else {"answer": "mill"}

    found, *_, asked = run("kag", ["When did the mill burn?"], never_enough)
    assert sum("Notes:\n" in text for text in asked) == 3
    assert len(said(found["solve.walk.solved.notes"])[0]) == 4 and not found["solve.walk.chunks"].failed


def test_kag_without_a_planner_asks_nothing():
    found, *_, asked = run("kag", ["Who built the Glass Bridge?", "x"], **{"method.retrieve.planned.planner": "none"})
    assert not asked and said(found["planned"]) == [["Who built the Glass Bridge?"], ["x"]]
    assert found["solve.walk.chunks"].row(0).ids[0] == 0 and len(found["solve.walk.chunks"].row(1).ids)


def test_a_step_that_is_lost_costs_its_question():
    def answer(text, schema):
        if "Passages:" in text and "Bridge?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return solver(text, schema)

    texts = ["Where was the builder of the Glass Bridge born?", "When did the mill of Norhaven burn?"]
    found, *_ = run("kag", texts, answer)
    assert dict(found["solve.walk.chunks"].failed) == {0: "timeout: 60 s"}
    assert len(said(found["solve.walk.solved.notes"])[1]) == 2


@pytest.mark.parametrize("method", ["hipporag2", "kag"])
def test_questions_do_not_hang_on_each_other(method):
    texts = ["Who built the Glass Bridge?", "When did the mill burn?", "Where is Norhaven?"]
    off = {"hipporag2": {"method.retrieve.facts.filter": "none"}, "kag": {"method.retrieve.planned.planner": "none"}}[
        method
    ]
    name = {"hipporag2": "chunks", "kag": "solve.walk.chunks"}[method]
    together = run(method, texts, **off)[0][name]
    for row, text in enumerate(texts):
        alone = run(method, [text], **off)[0][name].row(0)
        assert alone.ids.tolist() == together.row(row).ids.tolist()
        np.testing.assert_allclose(alone.scores, together.row(row).scores, rtol=1e-12)
