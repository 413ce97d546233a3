"""Extraction without a model: names found by rules (or by spaCy), and relations read off the words between them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.extraction import Extraction, Triple, clean
from graphrag_bench.graph.mentions import completed, cut_apart, one_spelling, tail, with_common
from graphrag_bench.graph.phrases import Phrase, phrases
from graphrag_bench.graph.spacy_phrases import spacy_phrases, spacy_versions
from graphrag_bench.graph.wording import Usage, Word, bare_title, word_list, words
from graphrag_bench.registry import register
from graphrag_bench.store.artifacts import digest

TOGETHER = "occurs with"
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_LISTED = frozenset({"and", "or", "&"})
_TRAILING = _LISTED | {"a", "an", "the", "s"}


def _reads(settings: Mapping[str, Any]) -> str:
    """Return what the names hang on beside the settings: the word lists, and the versions of spaCy and its model."""
    lists = ("abbreviation", "calendar", "function", "joining", "lead", "pronoun")
    read: list[Any] = [[name, sorted(word_list(name))] for name in lists]
    if settings["engine"] == "spacy":
        read.append(spacy_versions(str(settings["spacy_model"])))
    return digest(read)


@register("extractor", "noun_phrase", inputs=_reads)
def extract(
    chunks: ChunkTable,
    *,
    engine: Literal["rule", "spacy"] = "rule",
    spacy_model: str = "en_core_web_sm",
    title: bool = True,
    numbers: bool = True,
    common: bool = False,
    max_predicate_words: int = 6,
    cooccurrence: bool = True,
) -> Extraction:
    """Find the names of each chunk, and relate each to the next one of its sentence and to the chunk's title.

    The predicate is what stands between two names; a name in a list ("Kentucky and Virginia") takes over the subject and
    predicate of the one before. Every relation joins neighbours, a name and the title, or a name and the name it ends with:
    their number is linear in that of the names.

    Args:
        chunks: what to read.
        engine: our rules (see `graphrag_bench.graph.phrases`), or spaCy's entities and noun chunks.
        spacy_model: spaCy's model, where it is the engine.
        title: the chunk's title is an entity of it, the subject of sentences that do not name it, and related to every name.
        numbers: dates, years and other numbers are entities too.
        common: so are phrases of one to three words in small letters that a few chunks share.
        max_predicate_words: words between two names that still make a predicate.
        cooccurrence: relate as "occurs with" a name and the title, or neighbours where there is no title, which no predicate
            joins; else not at all.
    """
    texts = [unicodedata.normalize("NFC", _body(chunk.text, chunk.title)) for chunk in chunks]
    rows = [words(text) for text in texts]
    titles = [
        bare_title(unicodedata.normalize("NFC", " ".join(chunk.title.split()))) if title else "" for chunk in chunks
    ]
    usage = Usage.of(rows, titles)
    if engine == "spacy":
        found = spacy_phrases(texts, rows, spacy_model, numbers)
    else:
        found = [phrases(text, row, usage, numbers) for text, row in zip(texts, rows, strict=True)]
        found = cut_apart(found, rows, texts, usage)
    if common:
        found = with_common(found, rows, texts)
    found = [completed(row, name, here, usage) for row, name, here in zip(rows, titles, found, strict=True)]
    found = one_spelling(found, filter(None, titles))
    known = Counter(name for here in found for name in {phrase.name for phrase in here})
    told = []
    for text, row, name, here in zip(texts, rows, titles, found, strict=True):
        names = list(dict.fromkeys([*([name] if name else ()), *(phrase.name for phrase in here)]))
        triples = _between(text, row, here, name, max_predicate_words)
        if cooccurrence:
            triples.extend(_together(triples, names, here, name))
        ends = [(whole, *end) for whole in names if (end := tail(whole, known))]
        triples.extend((whole, joint or TOGETHER, end) for whole, joint, end in ends if joint or cooccurrence)
        told.append(clean([*names, *(end for _, _, end in ends)], triples))
    return Extraction(tuple(names for names, _ in told), tuple(triples for _, triples in told))


def _body(text: str, title: str) -> str:
    """Return a chunk's text without the title's line the chunker may have put before it."""
    head, _, rest = text.partition("\n")
    return rest if title and head.strip() == title.strip() else text


def _between(text: str, row: Sequence[Word], found: Sequence[Phrase], title: str, most: int) -> list[Triple]:
    """Relate each name to the next of its sentence by the words between; the title opens a sentence that does not name it."""
    triples: list[Triple] = []
    for start, said in _sentences(row, found):
        left, end, rest = said[0].name, row[said[0].last].end, said[1:]
        if title and all(phrase.name != title for phrase in said):
            pronoun = row[start].key in word_list("pronoun") and said[0].first > start
            left, end, rest = title, row[start].end if pronoun else row[start].start, said
        listing: tuple[str, str] | None = None
        for phrase in rest:
            predicate, listed = _predicate(text[end : row[phrase.first].start], most)
            if predicate or not listed:
                listing = (left, predicate) if predicate else None
            if listing:
                triples.append((*listing, phrase.name))
            left, end = phrase.name, row[phrase.last].end
    return [triple for triple in triples if triple[0] != triple[2]]


def _sentences(row: Sequence[Word], found: Sequence[Phrase]) -> list[tuple[int, list[Phrase]]]:
    """Return the names by sentence, with the sentence's first word; a sentence without names is left out."""
    opened = [number for number, word in enumerate(row) if word.opens]
    sentences: dict[int, list[Phrase]] = {}
    at = -1
    for phrase in found:
        while at + 1 < len(opened) and opened[at + 1] <= phrase.first:
            at += 1
        sentences.setdefault(opened[at], []).append(phrase)
    return list(sentences.items())


def _predicate(between: str, most: int) -> tuple[str, bool]:
    """Return the predicate two names are joined by, or nothing; and whether they are items of one list."""
    said = [word.text for word in words(_ASIDE.sub(" ", between))]
    if all(word.casefold() in _LISTED for word in said):
        return "", bool(said) or between.strip() in (",", "/", "&")
    while said and said[-1].casefold() in _TRAILING:
        said.pop()
    while said and said[0].casefold() in _LISTED:
        said.pop(0)
    return (" ".join(said), False) if 0 < len(said) <= most else ("", False)


def _together(stated: Sequence[Triple], names: Sequence[str], found: Sequence[Phrase], title: str) -> list[Triple]:
    """Relate what no predicate relates: each name to the title, or each to the next where there is none."""
    joined = {frozenset((subject, object_)) for subject, _, object_ in stated}
    spoken = [phrase.name for phrase in found]
    pairs = [(title, name) for name in names] if title else list(pairwise(spoken))
    return [(a, TOGETHER, b) for a, b in pairs if a != b and frozenset((a, b)) not in joined]
