"""The words of a text, which of them open a sentence, and how a corpus writes each: in small letters or capitalised."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# a number with its separators, or letters and digits with what joins them inside a word (O'Neill, AT&T, F-16, U.S)
_WORD = re.compile(r"\d+(?:[.,:]\d+)+(?![^\W_])|[^\W_]+(?:[.'’&/‐‑-][^\W_]+)*")
_STOPS = re.compile(r"[.!?。！？…][\"'”’»)\]]*\s|[。！？]|\n\s*\n|[•*|#]")
POSSESSIVE = re.compile(r"['’]s?$", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\([^()]*\)$")


class Word(NamedTuple):
    """One word: its text, where it stands, its key (case-folded, no possessive), and what stands before it."""

    text: str
    start: int
    end: int
    key: str
    opens: bool  # it begins a sentence
    joins: bool  # only white space (or the dot of an initial) parts it from the word before

    @property
    def capital(self) -> bool:
        """Whether it has a capital letter."""
        return self.text != self.text.lower()

    @property
    def functional(self) -> bool:
        """Whether it is a function word ("Us", but not the acronym "US")."""
        return self.key in word_list("function") and not (len(self.text) > 1 and self.text.isupper())

    @property
    def weighty(self) -> bool:
        """Whether it is capitalised and no function word."""
        return self.capital and not self.functional


@cache
def word_list(name: str) -> frozenset[str]:
    """Return one of the word lists beside this module."""
    return frozenset(files("graphrag_bench.graph").joinpath("words", f"{name}.txt").read_text("utf-8").split())


def bare_title(title: str) -> str:
    """Return a title without what distinguishes it in brackets: "Titanic (1997 film)" names "Titanic"."""
    return _BRACKETS.sub("", title).strip() or title.strip()


def words(text: str) -> list[Word]:
    """Return the words of a text, each told whether it opens a sentence."""
    found: list[Word] = []
    end = 0
    for match in _WORD.finditer(text):
        spelled = match.group()
        between = text[end : match.start()]
        key = POSSESSIVE.sub("", spelled).casefold()
        opens, joins = not found, False
        if found:
            short = between.startswith(".") and _abbreviated(found[-1])
            opens = _opens(between, spelled, key, short)
            joins = not opens and (between[1:] if short else between).strip() in ("", "&")
        found.append(Word(spelled, match.start(), match.end(), key, opens, joins))
        end = match.end()
    return found


def _abbreviated(word: Word) -> bool:
    return (len(word.text) == 1 and word.text.isupper()) or "." in word.text or word.key in word_list("abbreviation")


def _opens(between: str, spelled: str, key: str, short: bool) -> bool:
    if not _STOPS.search(between):
        return False
    if short and between.count(".") == 1 and "\n\n" not in between:
        return spelled[0].isupper() and key in word_list("function")
    return not spelled[0].islower() or "\n" in between


@dataclass(frozen=True)
class Usage:
    """How a corpus writes its words.

    Attributes:
        small: how often each word stands in small letters.
        capital: how often it is capitalised where no sentence begins.
        titles: the words of each title, to the title as it is written.
    """

    small: Counter[str]
    capital: Counter[str]
    titles: dict[tuple[str, ...], str]
    lengths: dict[
        str, tuple[int, ...]
    ]  # first word of a title -> lengths of the titles that begin with it, longest first

    @classmethod
    def of(cls, texts: Iterable[Sequence[Word]], titles: Iterable[str]) -> "Usage":
        """Count the words of a corpus and learn its titles."""
        small: Counter[str] = Counter()
        capital: Counter[str] = Counter()
        for text in texts:
            small.update(word.key for word in text if not word.capital)
            capital.update(word.key for word in text if word.capital and not word.opens)
        known: dict[tuple[str, ...], str] = {}
        for title in titles:
            name = bare_title(title)
            keys = tuple(word.key for word in words(name))
            if keys and not all(key in word_list("function") or key in word_list("calendar") for key in keys):
                known.setdefault(keys, name)
        lengths: dict[str, set[int]] = {}
        for keys in known:
            lengths.setdefault(keys[0], set()).add(len(keys))
        return cls(small, capital, known, {key: tuple(sorted(n, reverse=True)) for key, n in lengths.items()})

    def common(self, key: str) -> bool:
        """Return whether the word also stands in small letters, more than by accident."""
        return self.small[key] * 10 > self.capital[key]

    def plain(self, key: str) -> bool:
        """Return whether a capital on the word says nothing: it mostly stands in small letters."""
        return key in word_list("function") or self.small[key] > self.capital[key]
