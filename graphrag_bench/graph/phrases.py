"""Names in running text, found by rules: capitals, quotation marks, the corpus's own titles, and no model.

What a capital letter means is asked of the corpus. A word that stands in small letters elsewhere ("department") is a common
word; one that is capitalised inside sentences is a name. So the first word of a sentence is judged by how the corpus writes
it elsewhere, and "Department for Education" is joined where "Germany for France" is not. Scripts without capitals give
names only by titles and quotation marks.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphrag_bench.graph.wording import POSSESSIVE, Usage, Word, word_list, words

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]|``(.{2,80}?)''|[《「『]([^》」』]{1,40})[》」』]")
_MAX_QUOTED = 8  # words; longer quotations are speech
_LINKS = frozenset({"and", "&", "for", "in", "on", "at", "to", "with", "from", "by", "the", "a", "an"})


class Phrase(NamedTuple):
    """A name and the words (first to last, inclusive) that say it."""

    name: str
    first: int
    last: int


def phrases(text: str, row: Sequence[Word], usage: Usage, numbers: bool = False) -> list[Phrase]:
    """Return the names in a text, in the order they stand in it; no two overlap.

    Args:
        text: the text, in Unicode's composed form (NFC).
        row: its words.
        usage: how the corpus writes words.
        numbers: names too: dates, years and other numbers.
    """
    taken = [False] * len(row)
    found: list[Phrase] = []

    def take(phrase: Phrase) -> None:
        if not any(taken[phrase.first : phrase.last + 1]):
            taken[phrase.first : phrase.last + 1] = [True] * (phrase.last + 1 - phrase.first)
            found.append(phrase)

    for phrase in (*_quoted(text, row, usage), *_titles(row, usage), *(_dates(text, row) if numbers else ())):
        take(phrase)
    at = 0
    while at < len(row):
        stop = _run(row, at, usage, taken)
        named = _named(text, row, at, stop, usage) if stop > at else None
        if named:
            take(named)
        at = max(stop, at + 1)
    if numbers:
        for number, word in enumerate(row):
            if word.text[0].isdigit() and not taken[number]:
                take(Phrase(word.text, number, number))
    return sorted(found, key=lambda phrase: phrase.first)


def _quoted(text: str, row: Sequence[Word], usage: Usage) -> Iterable[Phrase]:
    """Quoted titles: short, and capitalised from their first word on."""
    starts = {word.start: number for number, word in enumerate(row)}
    for match in _QUOTED.finditer(text):
        inside = words(match.group(match.lastindex or 0))
        offset = match.start(match.lastindex or 0)
        if not inside or len(inside) > _MAX_QUOTED or offset + inside[0].start not in starts:
            continue
        weighty = [word for word in inside if word.key not in word_list("function")]
        cased = any(char.isupper() or char.islower() for char in match.group())
        if cased and (not weighty or not inside[0].capital or not all(word.capital for word in weighty)):
            continue
        if len(inside) == 1 and cased and usage.plain(inside[0].key):
            continue
        first = starts[offset + inside[0].start]
        last = first + len(inside) - 1
        if last < len(row):
            yield Phrase(" ".join(text[row[first].start : row[last].end].split()), first, last)


def _titles(row: Sequence[Word], usage: Usage) -> Iterable[Phrase]:
    """The corpus's titles where the text says them: a single word capitalised, several words in any case."""
    number = 0
    while number < len(row):
        for length in usage.lengths.get(row[number].key, ()):
            part = row[number : number + length]
            name = usage.titles.get(tuple(word.key for word in part))
            if len(part) < length or name is None or any(word.opens for word in part[1:]):
                continue
            if length == 1 and (not part[0].capital or (part[0].opens and usage.plain(part[0].key))):
                continue
            if _inside_name(row, number, number + length, usage):
                continue
            yield Phrase(name, number, number + length - 1)
            number += length - 1
            break
        number += 1


def _inside_name(row: Sequence[Word], first: int, stop: int, usage: Usage) -> bool:
    """Return whether the words are a part of a longer capitalised run ("York" in "New York")."""
    before = first > 0 and row[first].joins and row[first - 1].capital and not usage.plain(row[first - 1].key)
    before = before and not POSSESSIVE.search(row[first - 1].text)
    after = stop < len(row) and row[stop].joins and row[stop].weighty and not POSSESSIVE.search(row[stop - 1].text)
    return before or after


def _run(row: Sequence[Word], at: int, usage: Usage, taken: Sequence[bool]) -> int:
    """Return where the capitalised run that begins at a word stops; ``at`` itself where none begins."""
    if taken[at] or not _names(row, at, usage):
        return at
    stop = at + 1
    while stop < len(row) and not taken[stop] and row[stop].joins:
        word, before = row[stop], row[stop - 1]
        owner = POSSESSIVE.search(before.text) is not None
        if word.weighty or (word.text == "I" and before.weighty):  # World War I
            if owner and not usage.common(word.key):
                break
            stop += 1
        elif word.text[0].isdigit() and before.key not in word_list("calendar"):
            stop += 1
        else:
            bridge = _bridge(row, stop, usage, taken)
            if owner or not bridge:
                break
            stop += bridge
    return stop


def _names(row: Sequence[Word], at: int, usage: Usage) -> bool:
    """Return whether a run of capitals can begin at a word."""
    word = row[at]
    after = row[at + 1] if at + 1 < len(row) and row[at + 1].joins else None
    if word.text[0].isdigit():  # "the 2018 Winter Olympics", but "in 1960 Kennedy"
        led = at > 0 and row[at - 1].key == "the"
        return led and after is not None and after.weighty and usage.common(after.key)
    if not word.weighty:
        return word.capital and word.text == "The" and not word.opens and after is not None and after.weighty
    if not word.opens:
        return True
    if after is not None and after.weighty:
        return not usage.plain(word.key) or usage.common(after.key)
    return not usage.plain(word.key)


def _bridge(row: Sequence[Word], at: int, usage: Usage, taken: Sequence[bool]) -> int:
    """Return how many words from ``at`` on join two parts of a name, the first word of the second part included."""
    for width in (1, 2, 3):
        stop = at + width
        if stop >= len(row) or taken[stop] or not all(word.joins for word in row[at : stop + 1]):
            return 0
        inner = [word.key for word in row[at:stop]]
        right = row[stop]
        if right.weighty:
            if inner[0] in word_list("joining") and all(k in word_list("joining") or k == "the" for k in inner):
                return width + 1
            if any(key not in _LINKS and key not in word_list("joining") for key in inner):
                return 0
            left = row[at - 1]
            joined = usage.common(right.key) and (usage.common(left.key) or inner == ["the"])
            return width + 1 if joined else 0
    return 0


def _named(text: str, row: Sequence[Word], first: int, stop: int, usage: Usage) -> Phrase | None:
    """Return the run as a phrase; None where it is a date, or a single word whose capital says nothing."""
    if all(word.key in word_list("calendar") or word.text[0].isdigit() for word in row[first:stop]):
        return None
    word, last = row[first], stop - 1
    acronym = len(word.text) > 1 and word.text.isupper()
    if first == last and (len(word.key) < 2 or (usage.plain(word.key) and not acronym)):
        return None
    name = text[word.start : row[last].end]
    return Phrase(" ".join(POSSESSIVE.sub("", name).split()), first, last)


def _dates(text: str, row: Sequence[Word]) -> Iterable[Phrase]:
    """A month, season or day of the week with the day before or after it and the year: "3 May 1904", "May 3, 1904"."""
    for at, word in enumerate(row):
        if not word.capital or word.key not in word_list("calendar"):
            continue
        first, last = at, at
        if at and word.joins and row[at - 1].text.isdigit() and len(row[at - 1].text) < 3:
            first = at - 1
        while last + 1 < len(row) and last < at + 2 and row[last + 1].text.isdigit() and not row[last + 1].opens:
            if text[row[last].end : row[last + 1].start].strip() not in ("", ","):
                break
            last += 1
        if last > first:
            yield Phrase(" ".join(text[row[first].start : row[last].end].split()), first, last)
