"""The keyword side of KET-RAG's index: which word stands in which chunk, and the sentences that say what it is about."""

import re
from collections.abc import Sequence

import numpy as np

from graphrag_bench.graph.graph import Incidence, incidence
from graphrag_bench.graph.tree.extracts import sentences
from graphrag_bench.graph.wording import word_list

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def keywords_of(
    texts: Sequence[str], per_chunk: int | None, sentences_each: int
) -> tuple[list[str], list[str], Incidence]:
    """Return the keywords of a corpus, what is said with each, and which chunk has which.

    Words are told apart in small letters; function words, single letters and numbers of one digit are none. With
    ``per_chunk`` a chunk has only its words of greatest TF-IDF weight (count times ln(N / df)), ties by word.

    Args:
        texts: the chunks.
        per_chunk: keywords a chunk at most; None for every word.
        sentences_each: sentences that describe a keyword, the first of the corpus that have it.

    Returns:
        The words in the order of the alphabet, a text each, and a binary (words, chunks) matrix.
    """
    counts: list[dict[str, int]] = []
    for text in texts:
        row: dict[str, int] = {}
        for word in _words(text):
            row[word] = row.get(word, 0) + 1
        counts.append(row)
    seen: dict[str, int] = {}
    for row in counts:
        for word in row:
            seen[word] = seen.get(word, 0) + 1
    kept = [_weightiest(row, seen, len(texts), per_chunk) for row in counts]
    names = sorted({word for row in kept for word in row})
    ids = {word: number for number, word in enumerate(names)}
    said: list[dict[str, None]] = [{} for _ in names]
    for text, words in zip(texts, kept, strict=True):
        wanting = {word for word in words if len(said[ids[word]]) < sentences_each}
        for part in sentences(text) if wanting else ():
            for word in wanting.intersection(_words(part)):
                if len(said[ids[word]]) < sentences_each:
                    said[ids[word]][part] = None
    rows = np.array([ids[word] for row in kept for word in row], np.int64)
    columns = np.array([number for number, row in enumerate(kept) for _ in row], np.int64)
    return names, [" ".join(parts) for parts in said], incidence(rows, columns, (len(names), len(texts)))


def _words(text: str) -> list[str]:
    function = word_list("function")
    found = (match.group().casefold() for match in _WORD.finditer(text))
    return [word for word in found if len(word) > 1 and word not in function]


def _weightiest(row: dict[str, int], seen: dict[str, int], size: int, most: int | None) -> list[str]:
    if most is None:
        return sorted(row)
    weight = {word: round(count * float(np.log(size / seen[word])), 9) for word, count in row.items()}
    return sorted(sorted(row, key=lambda word: (-weight[word], word))[:most])
