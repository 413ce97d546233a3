"""Names found by spaCy: its entities, and the noun chunks that hold none."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.graph.phrases import Phrase
from graphrag_bench.graph.wording import Word, word_list

_NUMBERS = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})


def spacy_phrases(
    texts: Sequence[str], rows: Sequence[Sequence[Word]], model: str, numbers: bool
) -> list[list[Phrase]]:
    """Return the names spaCy finds in each text; a noun chunk without the function words it begins with.

    Args:
        texts: the texts.
        rows: their words.
        model: the name of an installed spaCy model.
        numbers: keep dates, quantities and other numbers.
    """
    documents = _model(model).pipe(texts)
    return [_settled(_spans(doc, numbers), text, row) for doc, text, row in zip(documents, texts, rows, strict=True)]


def spacy_versions(model: str) -> list[str]:
    """Return the versions of spaCy and of one of its models; an empty text for what is not installed as a package."""
    found = []
    for package in ("spacy", model):
        try:
            found.append(version(package))
        except PackageNotFoundError:
            found.append("")
    return found


def _model(name: str) -> Any:
    try:
        import spacy
    except ImportError:
        raise UserError(
            "graph.engine=spacy, and spaCy is not installed.", "Run: pip install spacy; or use graph.engine=rule."
        ) from None
    try:
        return spacy.load(name)
    except OSError:
        raise UserError(
            f"spaCy has no model called {name!r} here.",
            f"Run: python -m spacy download {name}; or name another with graph.spacy_model.",
        ) from None


def _spans(doc: Any, numbers: bool) -> Iterator[tuple[int, int]]:
    """Entities first, then noun chunks (a model without a parser has none): where each begins and ends in the text."""
    for entity in doc.ents:
        if numbers or entity.label_ not in _NUMBERS:
            yield entity.start_char, entity.end_char
    if doc.has_annotation("DEP"):
        for chunk in doc.noun_chunks:
            yield chunk.start_char, chunk.end_char


def _settled(spans: Iterable[tuple[int, int]], text: str, row: Sequence[Word]) -> list[Phrase]:
    """Return the spans as phrases over our words, the first come of those that overlap."""
    found: list[Phrase] = []
    taken: set[int] = set()
    for start, end in spans:
        inside = [number for number, word in enumerate(row) if start <= word.start and word.start < end]
        while inside and row[inside[0]].functional:
            inside.pop(0)
        if not inside or taken & set(inside) or all(row[number].key in word_list("pronoun") for number in inside):
            continue
        taken.update(inside)
        name = text[row[inside[0]].start : min(end, row[inside[-1]].end)]
        found.append(Phrase(" ".join(name.split()), inside[0], inside[-1]))
    return sorted(found, key=lambda phrase: phrase.first)
