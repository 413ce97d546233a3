"""Token windows: what they cover, how long they are, how they overlap."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.windows import Window, pieces, windows


class Words:
    """One token a word: hand-countable."""

    def starts(self, text: str) -> Sequence[int]:
        return [match.start() for match in re.finditer(r"\S+", text)]


class Bytes:
    """One token a byte, as the lowest level of a byte-pair encoder: tokens of one character share its offset."""

    def starts(self, text: str) -> Sequence[int]:
        return [position for position, character in enumerate(text) for _ in character.encode()]


TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
WORDS = st.sampled_from(["a", "word", "12", "naïve", "日本", "😀", ".", "\n", "  "])
ENGLISH = st.lists(WORDS, max_size=80).map(" ".join)
SIZES = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
REGEX = load_tokenizer("regex")


def test_windows_of_ten_words() -> None:
    text = " ".join("abcdefghij")
    found = pieces(text, windows(text, Words(), 4, 1))
    assert found == ["a b c d", "d e f g", "g h i j"]


def test_a_tail_inside_the_overlap_is_dropped_or_kept() -> None:
    text = " ".join("abcdefg")  # starts 0, 3, 6: the last window is "g" alone, already in "d e f g"
    assert pieces(text, windows(text, Words(), 4, 1)) == ["a b c d", "d e f g"]
    assert pieces(text, windows(text, Words(), 4, 1, "keep")) == ["a b c d", "d e f g", "g"]


def test_the_paper_s_windows_begin_every_1100_tokens() -> None:
    text = " ".join(map(str, range(3350)))
    kept = windows(text, Words(), 1200, 100, "keep")
    assert [text[w.start :].split(" ", 1)[0] for w in kept] == ["0", "1100", "2200", "3300"]
    assert [w.tokens for w in kept] == [1200, 1200, 1150, 50]
    assert windows(text, Words(), 1200, 100) == kept[:3]


def test_a_text_without_tokens_is_one_window_or_none() -> None:
    assert windows("", Words(), 4, 1) == []
    assert windows("  \n", Words(), 4, 1) == [Window(0, 3, 0)]
    assert pieces("  \n", windows("  \n", Words(), 4, 1)) == []


def test_white_space_at_a_cut_goes_and_at_the_ends_of_the_text_stays() -> None:
    text = " a b \n c d "
    assert pieces(text, windows(text, Words(), 2, 0)) == [" a b", "c d "]
    assert pieces(text, windows(text, Words(), 9, 0)) == [text]


@given(text=TEXT | ENGLISH, sizes=SIZES)
def test_windows_of_the_regex_tokenizer(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    found = windows(text, REGEX, size, overlap)
    total = len(REGEX.starts(text))
    assert all(window.tokens <= size for window in found)
    assert all(window.tokens == size for window in found[:-1])
    assert "".join(text[a.start : b.start] for a, b in pairwise(found)) + (
        text[found[-1].start : found[-1].stop] if found else ""
    ) == text  # fmt: skip
    assert all(b.start <= a.stop for a, b in pairwise(found))  # no gap
    cuts = [0, *REGEX.starts(text)[1:], len(text)]
    for a, b in pairwise(found):
        assert cuts.index(a.stop) - cuts.index(b.start) == overlap
    assert sum(window.tokens for window in found) - overlap * max(0, len(found) - 1) == total
    assert all(b.stop > a.stop for a, b in pairwise(found))  # none inside the one before


@given(text=TEXT, sizes=SIZES)
def test_windows_of_bytes_never_cut_a_character(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    found = windows(text, Bytes(), size, overlap)
    covered = {position for window in found for position in range(window.start, window.stop)}
    assert covered == set(range(len(text)))
    for window in found:
        piece = text[window.start : window.stop]
        assert window.tokens == len(piece.encode())
        assert window.tokens <= size or len(piece) == 1


@given(text=TEXT | ENGLISH, sizes=SIZES)
def test_keep_only_adds_windows_inside_the_last(text: str, sizes: tuple[int, int]) -> None:
    dropped, kept = (windows(text, REGEX, *sizes, tail) for tail in ("drop", "keep"))
    assert kept[: len(dropped)] == dropped
    assert all(window.start >= dropped[-1].start and window.stop == len(text) for window in kept[len(dropped) :])


@pytest.mark.parametrize("text", ["日本語" * 500, "x" * 5000, "=" * 5000, "😀" * 500, "\n" * 999, " " * 999, "1" * 999])
def test_no_text_is_one_endless_token_to_the_regex_tokenizer(text: str) -> None:
    long = 1 if text.isspace() else len(text) // 16
    assert len(REGEX.starts(text)) >= long


def test_marks_stay_with_their_letters() -> None:
    text = "e\u0301 👩\u200d💻 ❤\ufe0f"
    assert all(text[start] not in "\u0301\u200d\ufe0f" for start in REGEX.starts(text))
