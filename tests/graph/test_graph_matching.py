"""Soft matching: which names are read as one, by cosine and by letters, and that nothing is chained."""

import difflib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import UserError
from graphrag_bench.graph.matching import alike, most_frequent, soft_matches


class Table:
    """An embedder whose vectors are said by hand: an angle a text, in degrees."""

    def __init__(self, **angles):
        self.angles = angles

    def embed(self, texts, kind):
        turned = np.radians([self.angles[text.split()[-1]] for text in texts])
        return np.column_stack([np.cos(turned), np.sin(turned)]).astype(np.float32)


def matched(mentions, embedder, cosine=0.9, spelling=0.6):
    names = {name.casefold(): name for name in mentions}
    return soft_matches(names, {name.casefold(): count for name, count in mentions.items()}, embedder, cosine, spelling)


def test_both_the_meaning_and_the_letters_must_be_near():
    near = Table(Scrooge=0, Marley=5, Scrouge=80)
    mentions = {"Ebenezer Scrooge": 3, "Scrooge": 5, "Jacob Marley": 4, "Scrouge": 1}
    assert matched(mentions, near) == {"ebenezer scrooge": "scrooge"}  # Marley is near in meaning, Scrouge in letters
    assert matched(mentions, near, spelling=0.0) == {"ebenezer scrooge": "scrooge", "jacob marley": "scrooge"}
    assert matched(mentions, near, cosine=0.1) == {"ebenezer scrooge": "scrooge", "scrouge": "scrooge"}
    assert matched(mentions, near, spelling=1.0) == {}


def test_names_with_other_numbers_are_never_one():
    assert matched({"World War 1": 5, "World War 2": 3}, Table(**{"1": 0, "2": 0}), spelling=0.0) == {}


def test_the_more_frequent_name_stands_for_both_of_equals_the_first_met():
    same = Table(Brown=0)
    assert matched({"Ada Brown": 1, "A Brown": 1}, same) == {"a brown": "ada brown"}
    assert matched({"Ada Brown": 1, "A Brown": 2}, same) == {"ada brown": "a brown"}


@pytest.mark.parametrize("setting", ["match_cosine", "match_spelling"])
def test_a_threshold_out_of_its_range_is_said(setting):
    with pytest.raises(UserError, match=setting):
        matched({"A Brown": 1}, Table(Brown=0), **{setting.removeprefix("match_"): 1.5})


def test_alike():
    assert alike("international business machines", "ibm") == alike("ibm", "international business machines") == 1.0
    assert alike("brown ada", "ada brown") == 1.0
    assert alike("scrooge", "ebenezer scrooge") == pytest.approx(0.9)
    assert alike("organisation", "organization") > 0.7 > 0.3 > alike("ada", "bob")
    assert alike("a", "b") == 0.0


words = st.lists(st.text("abcde", min_size=1, max_size=6), min_size=1, max_size=3).map(" ".join)


@given(words, words)
def test_alike_is_symmetric_between_0_and_1_and_1_for_the_same(one, other):
    assert alike(one, other) == alike(other, one)
    assert 0 <= alike(one, other) <= 1 and alike(one, one) == 1
    if difflib.SequenceMatcher(None, one, other).ratio() == 0:
        assert alike(one, other) == 0


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=25),
)
def test_a_name_others_are_read_as_is_read_as_itself_and_the_order_of_pairs_is_nothing(mentions, pairs):
    pairs = sorted({(a, b) for a, b in pairs if a < b < len(mentions)})
    read_as = most_frequent(np.array(mentions), pairs).tolist()
    assert read_as == most_frequent(np.array(mentions), [(b, a) for a, b in reversed(pairs)]).tolist()
    for name, other in enumerate(read_as):
        assert read_as[other] == other
        if name != other:
            assert (min(name, other), max(name, other)) in pairs
            assert (-mentions[other], other) < (-mentions[name], name)
    for a, b in pairs:  # a name that stands for itself is like none that stands for itself
        assert not (read_as[a] == a and read_as[b] == b)
