"""The lexical index: opened as built, and texts without a word among the rest."""

import numpy as np
import pytest

from graphrag_bench.index.lexical import LexicalIndex

TEXTS = ["The mill at Ulm burned.", "of the", "", "Mills, towers, and Straße 北京.", "... !", "Ulm Ulm Ulm mill"]
ASKED = ["Ulm", "mills burned", "the of and", "", "Straße", "北京?", "unheard", "ulm mill tower"]


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def plain(found):
    return [(ids.tolist(), scores.tolist()) for ids, scores in found]


def test_it_is_opened_as_it_was_built(folder):
    built = LexicalIndex.build(TEXTS, folder, k1=1.5, b=0.75)
    opened = LexicalIndex.open(folder, len(TEXTS))
    assert plain(opened.search(ASKED, 4)) == plain(built.search(ASKED, 4))
    found = [ids.tolist() for ids, _ in opened.search(ASKED, 4)]
    assert found[0] == [5, 0]
    assert sorted(found[1]) == [0, 3, 5]
    assert found[1][0] == 0
    assert [found[n] for n in (2, 3, 6)] == [[], [], []]
    assert found[4] == found[5] == [3]
    assert all((np.diff(scores) <= 0).all() and (scores > 0).all() for _, scores in opened.search(ASKED, 4))


@pytest.mark.parametrize("texts", [["the", "of the"], ["", "..."], ["mill"]])
def test_a_corpus_with_few_words_or_none(folder, texts):
    LexicalIndex.build(texts, folder, k1=1.5, b=0.75)
    index = LexicalIndex.open(folder, len(texts))
    assert [ids.tolist() for ids, _ in index.search(["the", "", "mill", "unheard"], 9)] == [
        [],
        [],
        [0] if "mill" in texts else [],
        [],
    ]


def test_searching_nothing(folder):
    assert LexicalIndex.build(TEXTS, folder, k1=1.5, b=0.75).search([], 3) == []


def test_scores_that_are_equal_but_for_rounding_rank_by_id(folder):
    # the same three words in another order and company: their scores are sums of the same numbers
    texts = ["fog inn ada", "ada fog inn", "inn ada fog", "fog"]
    ids, scores = LexicalIndex.build(texts, folder, k1=1.5, b=0.75).search(["ada inn fog inn"], 4)[0]
    assert ids.tolist() == [0, 1, 2, 3]
    assert scores[0] == scores[1] == scores[2] > scores[3]
