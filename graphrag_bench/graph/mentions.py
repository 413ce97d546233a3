"""Names settled over a corpus: run-on names cut apart, last names completed, spellings made one, common phrases added."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from graphrag_bench.graph.phrases import Phrase
from graphrag_bench.graph.wording import Usage, Word, word_list, words

_TAIL = re.compile(r"(?:(,)|\b(of|in|at|on|for|de)(?: the)?) ([^\W\d_].*)$")
_YEAR = re.compile(r"(?<= )\d{4}$")
_COMMON_WORDS = 3  # words of a common phrase at most
_COMMON_SHARE = 0.02  # of the chunks; what stands in more of them tells none from another
Rows = Sequence[Sequence[Word]]
Found = Sequence[Sequence[Phrase]]


def cut_apart(found: Found, rows: Rows, texts: Sequence[str], usage: Usage) -> list[list[Phrase]]:
    """Cut a name that occurs once where it runs two together ("United States Dick Cheney").

    One part must have several words and stand alone in three chunks; the other must begin (or end) at the cut with a word
    the corpus never writes small, so that "United States Senate" stays whole.
    """
    keys = [
        [tuple(word.key for word in row[p.first : p.last + 1]) for p in here]
        for row, here in zip(rows, found, strict=True)
    ]
    seen = Counter(key for here in keys for key in set(here))

    def parts(phrase: Phrase, key: tuple[str, ...], row: Sequence[Word], text: str) -> list[Phrase]:
        if len(key) > 2 and seen[key] == 1 and key not in usage.titles:
            for size in range(len(key) - 1, 0, -1):
                cut = phrase.first + size
                left, right = key[:size], key[size:]
                ends = len(left) > 1 and seen[left] > 2 and not usage.common(right[0])
                begins = len(right) > 1 and seen[right] > 2 and not usage.common(left[-1])
                if row[cut].weighty and row[cut - 1].weighty and (ends or begins):
                    spans = ((phrase.first, cut - 1), (cut, phrase.last))
                    return [Phrase(" ".join(text[row[a].start : row[b].end].split()), a, b) for a, b in spans]
        return [phrase]

    return [
        [part for phrase, key in zip(here, mine, strict=True) for part in parts(phrase, key, row, text)]
        for here, mine, row, text in zip(found, keys, rows, texts, strict=True)
    ]


def completed(row: Sequence[Word], title: str, found: Sequence[Phrase], usage: Usage) -> list[Phrase]:
    """Replace a last name that stands alone by the one full name that ends with it in the chunk or its title."""
    full: dict[str, dict[str, None]] = {}
    for name in dict.fromkeys((title, *(phrase.name for phrase in found))):
        parts = words(name)
        if 1 < len(parts) < 4 and all(part.capital and not usage.common(part.key) for part in parts):
            full.setdefault(parts[-1].key, {})[name] = None
    settled = []
    for phrase in found:
        meant = list(full.get(row[phrase.first].key, ())) if phrase.first == phrase.last else []
        settled.append(phrase._replace(name=meant[0]) if len(meant) == 1 else phrase)
    return settled


def one_spelling(found: Found, titles: Iterable[str]) -> list[list[Phrase]]:
    """Write names that differ by case or a leading "the" alike: as the title, else as most often (the first, on a tie)."""
    spelled: dict[str, Counter[str]] = {}
    for here in found:
        for phrase in here:
            spelled.setdefault(_alike(phrase.name), Counter())[phrase.name] += 1
    best = {key: max(forms, key=forms.__getitem__) for key, forms in spelled.items()}
    best.update({_alike(title): title for title in reversed(tuple(dict.fromkeys(titles)))})
    return [[phrase._replace(name=best[_alike(phrase.name)]) for phrase in here] for here in found]


def _alike(name: str) -> str:
    return name.casefold().removeprefix("the ")


def tail(name: str, known: Counter[str]) -> tuple[str, str] | None:
    """Return the name another one ends with, and what joins them: ("of", "Sierra Leone") for "Bank of Sierra Leone".

    A name that ends with a year, as dates do, happened in it.

    Args:
        name: the whole.
        known: chunks by name; a tail must be a name of two chunks by itself.
    """
    at = 0
    while match := _TAIL.search(name, at):
        if known[match.group(3)] > 1:
            return match.group(2) or "", match.group(3)
        at = match.start(3)
    year = _YEAR.search(name)
    return ("in", year.group()) if year and known[year.group()] > 1 else None


def with_common(found: Found, rows: Rows, texts: Sequence[str]) -> list[list[Phrase]]:
    """Add phrases in small letters that follow a determiner or preposition, stand in two chunks and in few of all."""
    candidates = [
        _common(row, text, {n for phrase in here for n in range(phrase.first, phrase.last + 1)})
        for row, text, here in zip(rows, texts, found, strict=True)
    ]
    seen = Counter(name for here in candidates for name in {phrase.name for phrase in here})
    most = max(2, int(len(rows) * _COMMON_SHARE))
    return [
        sorted([*here, *(phrase for phrase in more if 2 <= seen[phrase.name] <= most)], key=lambda phrase: phrase.first)
        for here, more in zip(found, candidates, strict=True)
    ]


def _common(row: Sequence[Word], text: str, taken: set[int]) -> list[Phrase]:
    """The last words of each run of content words in small letters."""
    function, lead = word_list("function"), word_list("lead")
    found = []
    at = 1
    while at < len(row):
        stop = at
        while (
            stop < len(row)
            and row[stop].joins
            and stop not in taken
            and not row[stop].capital
            and row[stop].text[0].isalpha()
            and row[stop].key not in function
        ):
            stop += 1
        if stop > at and row[at - 1].key in lead:
            first = max(at, stop - _COMMON_WORDS)
            found.append(Phrase(" ".join(text[row[first].start : row[stop - 1].end].split()), first, stop - 1))
        at = max(stop, at) + 1
    return found
