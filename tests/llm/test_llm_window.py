"""Cutting a text to a budget of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.llm.base import Message
from graphrag_bench.llm.window import cut_to_window, estimate_tokens, prompt_tokens, surely_fits


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(("text", "budget", "kept"), [
    ("one two three", 3, "one two three"),
    ("one two three", 2, "one two"),
    ("one  two\nthree four", 3, "one  two\nthree"),
    ("one two", 0, ""),
    ("", 5, ""),
])
def test_the_head_is_kept_up_to_a_word_boundary(text: str, budget: int, kept: str) -> None:
    assert cut_to_window(text, budget, words) == kept


def test_a_first_word_too_long_is_cut_inside() -> None:
    assert cut_to_window("abcdefghij klm", 2, estimate_tokens) == "abcdef"


@given(st.text(max_size=200), st.integers(0, 60))
def test_what_is_kept_fits_and_is_a_head(text: str, budget: int) -> None:
    kept = cut_to_window(text, budget, estimate_tokens)
    assert (text.startswith(kept) and estimate_tokens(kept) <= budget) or kept == ""


@given(st.lists(st.text(max_size=50), min_size=1, max_size=4), st.integers(0, 300))
def test_what_surely_fits_does_fit(texts: list[str], room: int) -> None:
    messages = [Message("user", text) for text in texts]
    if surely_fits(messages, room):
        assert prompt_tokens(messages, lambda text: len(text.encode())) <= room
