"""chunk.bm25 against Lucene's formula written out: idf(w) · tf / (tf + k1 (1 - b + b · length / mean length))."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from operators.chunk.bm25 import bm25

# stems of themselves and no stop words, so that a split at spaces is what the index does
WORDS = ["ulm", "mill", "stone", "tower", "brask", "ada", "glass", "fog", "crown", "inn"]


def questions(texts, failed=None):
    return Questions(tuple(f"q{n}" for n in range(len(texts))), tuple(texts), failed=failed or {})


def lucene(texts, query, k1, b):
    documents = [Counter(text.split()) for text in texts]
    lengths = [sum(d.values()) for d in documents]
    mean = sum(lengths) / len(lengths)
    scores = {}
    for number, (document, length) in enumerate(zip(documents, lengths, strict=True)):
        for word in query.split():
            holding = sum(word in d for d in documents)
            if document[word]:
                idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                part = document[word] / (document[word] + k1 * (1 - b + b * length / mean))
                scores[number] = scores.get(number, 0.0) + idf * part
    return scores


def scene(seed):
    rng = np.random.default_rng(seed)
    said = [" ".join(rng.choice(WORDS, int(rng.integers(1, 8)))) for _ in range(int(rng.integers(1, 9)))]
    said.append(said[0])
    return said, [" ".join(rng.choice([*WORDS, "unheard"], int(rng.integers(1, 5)))) for _ in range(4)]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k1=st.sampled_from([0.9, 1.5]),
    b=st.sampled_from([0.0, 0.75, 1.0]),
    top_k=st.integers(1, 12),
)
def test_equals_the_formula_written_out(small, tmp_path_factory, seed, k1, b, top_k):
    said, asked = scene(seed)
    index = LexicalIndex.build(said, tmp_path_factory.mktemp("bm25"), k1=k1, b=b)
    found = bm25(questions(asked), index, top_k=top_k)
    for row, query in zip(found, asked, strict=True):
        wanted = small.ranked({n: round(score, 5) for n, score in lucene(said, query, k1, b).items()})
        scores = dict(wanted)
        assert len(row.ids) == min(top_k, len(wanted))
        for (identity, score), (_, best) in zip(small.pairs(row), wanted, strict=False):
            assert score == pytest.approx(scores[identity], abs=2e-5)
            assert score == pytest.approx(best, abs=2e-5)  # what stands at this place scores as the best left does


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, tmp_path_factory, seed, order):
    said, asked = scene(seed)
    index = LexicalIndex.build(said, tmp_path_factory.mktemp("bm25"), k1=1.5, b=0.75)
    whole = bm25(questions(asked), index, top_k=3)
    permuted = bm25(questions([asked[n] for n in order]), index, top_k=3)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for number, text in enumerate(asked):
        same(bm25(questions([text]), index, top_k=3), Chunks.of_rows([whole.row(number)]))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    said = ["the mill at ulm", "the mill at ulm", "mills and towers", "of the and", "fog"]
    return LexicalIndex.build(said, tmp_path_factory.mktemp("bm25"), k1=1.5, b=0.75)


def test_equal_chunks_stand_by_id_also_at_the_cut(built):
    assert bm25(questions(["ulm"]), built, top_k=1).row(0).ids.tolist() == [0]
    assert bm25(questions(["ulm"]), built, top_k=9).row(0).ids.tolist() == [0, 1]


def test_words_are_stemmed_and_folded_and_stop_words_say_nothing(built):
    found = bm25(questions(["Milling", "the of and", "unheard", "", "FOG?"]), built)
    assert [sorted(row.ids.tolist()) for row in found] == [[0, 1, 2], [], [], [], [4]]


def test_a_word_asked_twice_counts_twice(built):
    once, twice = bm25(questions(["fog", "fog fog"]), built)
    np.testing.assert_allclose(twice.scores, 2 * once.scores, rtol=1e-5)


def test_a_failed_question_has_an_empty_row_and_disturbs_nobody(built):
    found = bm25(questions(["ulm", "fog", "fog"], {1: "timeout: 60 s"}), built, top_k=1)
    assert [row.ids.tolist() for row in found] == [[0], [], [4]]
    assert len(bm25(questions([]), built)) == 0
