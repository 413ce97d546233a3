"""HippoRAG's chain, link > ppr > relationships > chunks, on a graph small enough to solve by hand.

Six nodes, five facts, four chunks (damping 1/2, no synonyms):

    chunk 0   Alder built Brask                                f0  Alder  -> Brask    weight 1
    chunk 1   Brask near Corvin                                f1  Brask  -> Corvin   weight 2 (chunks 1 and 2)
    chunk 2   Brask near Corvin, Corvin is Corvin              f2  Corvin -> Corvin   a loop: scored, never walked
    chunk 3   Dunmere rules Elsby, Fenn is Fenn                f3  Dunmere -> Elsby   f4  Fenn -> Fenn
"""

import asyncio

import numpy as np
import pytest

from graphrag_bench.cells import cells
from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders.kg import build
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.vectors import NodeVectors
from graphrag_bench.pipeline.execute import convert, retrieve
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions

TRIPLES = (
    (("Alder", "built", "Brask"),),
    (("Brask", "near", "Corvin"),),
    (("Brask", "near", "Corvin"), ("Corvin", "is", "Corvin")),
    (("Dunmere", "rules", "Elsby"), ("Fenn", "is", "Fenn")),
)
ENTITIES = {"one": ("Alder",), "two": ("Brask", "Dunmere"), "none": (), "alone": ("Fenn",), "twice": ("Alder", "alder")}


@pytest.fixture(scope="module")
def run():
    (cell,), _ = cells(["method=hipporag", "method.question.entities.by=given", "embedder=hashing", "llm=scripted"])
    chunks = tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(len(TRIPLES)))
    embedder = HashingEmbedder()
    graph = build(chunks, Extraction(((),) * 4, TRIPLES), embedder, synonym_threshold=None)
    assert graph.nodes["name"].to_pylist() == ["Alder", "Brask", "Corvin", "Dunmere", "Elsby", "Fenn"]
    lend = {
        Graph: graph,
        NodeVectors: NodeVectors(embedder.embed(graph.nodes["name"].to_pylist()), embedder),
        GivenEntities: GivenEntities(ENTITIES),
    }

    def values(*ids):
        questions = Questions(ids, tuple(f"{identity}?" for identity in ids))

        async def both():
            return await retrieve(cell.plan, lend, await convert(cell.plan, lend, questions))

        return asyncio.run(both())

    return values


def check(row, ids, scores):
    assert row.ids.tolist() == ids
    np.testing.assert_allclose(row.scores, scores, atol=1e-9)


def test_one_entity(run):
    # Restart at Alder. Degrees: Alder 1, Brask 1 + 2 = 3, Corvin 2.
    #   a = 1/2 · b/3 + 1/2      b = 1/2 (a + c)      c = 1/2 · 2b/3
    # so c = b/3, b = 3a/5, a = 5/9, b = 3/9, c = 1/9.
    found = run("one")
    check(found["linked"].row(0), [0], [1.0])  # in one chunk: specificity 1
    check(found["ranked"].row(0), [0, 1, 2], [5 / 9, 3 / 9, 1 / 9])
    # f0 = a + b = 8/9, f1 = b + c = 4/9, f2 = c + c = 2/9
    check(found["relationships"].row(0), [0, 1, 2], [8 / 9, 4 / 9, 2 / 9])
    # chunk 0 holds f0, chunk 1 f1, chunk 2 f1 and f2
    check(found["chunks"].row(0), [0, 2, 1], [8 / 9, 6 / 9, 4 / 9])


def test_two_entities_in_two_components(run):
    # Specificity: Brask lies in three chunks, Dunmere in one: 1/3 and 1, so the restart is 1/4 and 3/4.
    #   of the mass m = 1/4:  a = b/6, c = b/3, b = 1/2 (a + c) + m/2, so b = 2m/3 = 6/36, a = 1/36, c = 2/36
    #   of the mass 3/4:      Dunmere keeps 2/3 of it, Elsby 1/3: 18/36 and 9/36
    found = run("two")
    check(found["linked"].row(0), [3, 1], [1.0, 1 / 3])
    check(found["ranked"].row(0), [3, 4, 1, 2, 0], np.array([18, 9, 6, 2, 1]) / 36)
    # f3 = 27, f1 = 8, f0 = 7, f2 = 4 (in 36ths)
    check(found["relationships"].row(0), [3, 1, 0, 2], np.array([27, 8, 7, 4]) / 36)
    # chunk 3: f3 = 27; chunk 2: f1 + f2 = 12; chunk 1: f1 = 8; chunk 0: f0 = 7
    check(found["chunks"].row(0), [3, 2, 1, 0], np.array([27, 12, 8, 7]) / 36)


def test_an_isolated_entity_finds_its_own_chunk(run):
    found = run("alone")
    check(found["ranked"].row(0), [5], [1.0])
    check(found["chunks"].row(0), [3], [2.0])  # both ends of the loop


def test_questions_without_a_seed_have_empty_rows_and_a_batch_is_its_questions(run):
    batch = run("none", "one", "unheard", "two", "twice")
    for name in ("linked", "ranked", "relationships", "chunks"):
        assert len(batch[name]) == 5
        assert batch[name].row(0).ids.tolist() == batch[name].row(2).ids.tolist() == []
        assert set(batch[name].failed) == {2}  # the dataset does not speak of it; finding no entity is no failure
        for row, identity in ((1, "one"), (3, "two"), (4, "one")):
            alone = run(identity)[name].row(0)
            assert batch[name].row(row).ids.tolist() == alone.ids.tolist()
            assert batch[name].row(row).scores.tolist() == alone.scores.tolist()
