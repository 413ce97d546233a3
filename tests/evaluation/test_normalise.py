"""Normalisation: SQuAD to the letter on ASCII, and sane beyond."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.evaluation.normalise import comparable, normalise, tokens


def squad(text: str) -> str:
    """The four steps in SQuAD's own order, written independently."""
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_is_exactly_squad(text: str) -> None:
    assert normalise(text) == squad(text)


@given(st.text(alphabet="Aa the.“é\u0301ßΣ北Ａﬁ½…"))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat, an animal!", "cat animal"),
        ("U.S.A.", "usa"),  # punctuation is deleted, not spaced
        ("1914-1918", "19141918"),
        ("1914–1918", "19141918"),  # an en dash is punctuation too
        ("God’s “Gift”", "gods gift"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Ｔｏｋｙｏ", "tokyo"),  # full width
        ("Москва́", "москва́"),
        ("ΟΔΟΣ", normalise("οδος")),  # final sigma
        ("東京。", "東京"),
        ("Æther", "æther"),
        ("Theatre", "theatre"),
        ("", ""),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_chinese_and_japanese_characters_are_tokens() -> None:
    assert tokens(normalise("東京タワー in 2020")) == ["東", "京", "タ", "ワ", "ー", "in", "2020"]
    assert tokens(normalise("new york")) == ["new", "york"]


def test_a_gold_that_would_vanish_is_compared_as_it_is_written() -> None:
    assert comparable("Option B", "A") == ("option b", "a")
    assert comparable("The  The", "The The") == ("the the", "the the")
    assert comparable("The cat", "a cat") == ("cat", "cat")
