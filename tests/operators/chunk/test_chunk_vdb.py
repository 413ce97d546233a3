"""chunk.vdb: the nearest chunks, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.index.vectors import ChunkVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from operators.chunk.vdb import vdb

WORDS = ["Ada", "Brask", "Ulm", "mill", "river", "bridge", "stone", "tower", "burned", "built", "crossed"]


def questions(texts, failed=None):
    return Questions(tuple(f"q{n}" for n in range(len(texts))), tuple(texts), failed=failed or {})


def scene(seed):
    """Chunks of a few words, some of them the same, and questions of a few words."""
    rng = np.random.default_rng(seed)
    said = [" ".join(rng.choice(WORDS, int(rng.integers(1, 5)))) for _ in range(int(rng.integers(1, 9)))]
    said.append(said[0])
    return said, [" ".join(rng.choice(WORDS, 3)) for _ in range(4)]


def index(texts):
    embedder = HashingEmbedder(dim=64)
    return ChunkVectors(embedder.embed(texts), embedder)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.integers(1, 12))
def test_equals_plain_loops(small, seed, top_k):
    said, asked = scene(seed)
    vectors = index(said)
    found = vdb(questions(asked), vectors, top_k=top_k)
    for row, text in zip(found, asked, strict=True):
        query = vectors.embedder.embed([text])[0].astype(float)
        cosines = {n: round(float(vectors.matrix[n].astype(float) @ query), 6) for n in range(len(said))}
        wanted = small.ranked(cosines, top_k)
        assert row.ids.tolist() == [n for n, _ in wanted]
        np.testing.assert_allclose(row.scores, [score for _, score in wanted], atol=2e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, seed, order):
    said, asked = scene(seed)
    vectors = index(said)
    whole = vdb(questions(asked), vectors, top_k=3)
    permuted = vdb(questions([asked[n] for n in order]), vectors, top_k=3)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, text in enumerate(asked):
        same(vdb(questions([text]), vectors, top_k=3), Chunks.of_rows([whole.row(number)]))


def test_equal_chunks_stand_by_id_also_at_the_cut(small):
    vectors = index(["far away", "the mill", "the mill", "the mill"])
    assert vdb(questions(["the mill"]), vectors, top_k=2).row(0).ids.tolist() == [1, 2]
    assert vdb(questions(["the mill"]), vectors, top_k=9).row(0).ids.tolist() == [1, 2, 3, 0]
    assert small.pairs(vdb(questions(["the mill"]), vectors, top_k=1).row(0)) == [(1, pytest.approx(1.0))]


def test_a_failed_question_has_an_empty_row_and_disturbs_nobody():
    vectors = index(["the mill", "the river"])
    found = vdb(questions(["the mill", "the mill", "the river"], {1: "timeout: 60 s"}), vectors, top_k=1)
    assert [row.ids.tolist() for row in found] == [[0], [], [1]]
    assert [row.ids.tolist() for row in vdb(questions(["x", "y"], {0: "", 1: ""}), vectors)] == [[], []]


def test_no_questions_and_no_chunks():
    embedder = HashingEmbedder(dim=64)
    assert len(vdb(questions([]), index(["the mill"]))) == 0
    none = ChunkVectors(embedder.embed([]), embedder)
    assert [row.ids.tolist() for row in vdb(questions(["the mill"]), none)] == [[]]


def test_without_a_k_every_chunk_is_ranked():
    said, asked = scene(3)
    vectors = index(said)
    everything = vdb(questions(asked), vectors, top_k=None)
    assert [len(row.ids) for row in everything] == [len(said)] * len(asked)
    assert [row.ids.tolist() for row in everything] == [
        row.ids.tolist() for row in vdb(questions(asked), vectors, top_k=10**6)
    ]
    assert everything.top(2).row(0).ids.tolist() == vdb(questions(asked), vectors, top_k=2).row(0).ids.tolist()
