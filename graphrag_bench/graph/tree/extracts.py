"""Summaries without a model: the sentences of a cluster that lie nearest to its centroid."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log, sqrt

from graphrag_bench.chunking.tokenizers import Tokenizer
from graphrag_bench.graph.tree.layers import Cluster, Summarise, Summary
from graphrag_bench.llm.window import cut_to_window

_ENDS = re.compile(r"(?<=[.!?])(?<!\b[^\W\d_]\.)[\"')\]»”’]*\s+(?![\sa-zà-ÿ])|(?<=[。！？])|\s*\n\s*\n\s*")
_APART = "\n\n"  # a token; the next layer finds the same sentences again, also those without a mark at their end
_DECIMALS = 9
_SHORT = 4  # terms; what has fewer is mostly a piece of a sentence that an abbreviation cut
Terms = dict[str, float]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, spaces made single; a title above a text belongs to its first sentence.

    A sentence ends at a full stop, question or exclamation mark before white space, at their full-width forms, and at an
    empty line; not before a small letter. A single letter before a stop is an initial; other abbreviations are not known.
    """
    ends = [0, *(match.end() for match in _ENDS.finditer(text)), len(text)]
    found = (" ".join(text[start:stop].split()) for start, stop in pairwise(ends))
    return [sentence for sentence in found if sentence]


def by_extracts(corpus: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> Summarise:
    """Return a writer of summaries that asks nobody.

    Terms are the tokenizer's pieces that hold a letter or digit, case folded, weighted by count times ln(1 + N/df) over
    the corpus. A cluster's centroid is the mean of its texts' unit vectors. Its distinct sentences (those of four terms
    or more, where there are such) are taken by falling cosine with the centroid, of equal ones the first, each that still
    fits, and stand in the order of the texts, apart by an empty line. If the best alone does not fit, its head is the
    summary. (Centroid-based extraction: Radev et al., 2004.)

    Args:
        corpus: the texts of the leaves.
        tokenizer: finds terms, and counts tokens.
        max_tokens: tokens of a summary at most.
    """

    def count(text: str) -> int:
        return len(tokenizer.starts(text))

    def pieces(text: str) -> Counter[str]:
        starts = list(tokenizer.starts(text))
        cut = (text[a:b].strip().casefold() for a, b in zip(starts, [*starts[1:], len(text)], strict=True))
        return Counter(piece for piece in cut if any(map(str.isalnum, piece)))

    found: Counter[str] = Counter()
    for text in corpus:
        found.update(pieces(text).keys())

    @lru_cache(maxsize=1 << 16)
    def terms(text: str) -> Terms:
        weighed = {piece: times * log(1 + len(corpus) / (found[piece] or 1)) for piece, times in pieces(text).items()}
        length = sqrt(sum(weight * weight for weight in weighed.values()))
        return {piece: weight / length for piece, weight in weighed.items()}

    def extract(texts: Sequence[str]) -> str:
        centroid: Terms = {}
        for text in texts:
            for piece, weight in terms(text).items():
                centroid[piece] = centroid.get(piece, 0.0) + weight
        parts = list(dict.fromkeys(sentence for text in texts for sentence in sentences(text)))
        parts = [part for part in parts if sum(pieces(part).values()) >= _SHORT] or parts
        score = [
            round(sum(weight * centroid.get(piece, 0.0) for piece, weight in terms(part).items()), _DECIMALS)
            for part in parts
        ]
        ranked = sorted(range(len(parts)), key=lambda at: (-score[at], at))
        if count(parts[ranked[0]]) > max_tokens:
            return cut_to_window(parts[ranked[0]], max_tokens, count)
        taken: list[int] = []
        left = max_tokens
        for at in ranked:
            if (size := count(parts[at]) + (1 if taken else 0)) <= left:
                taken.append(at)
                left -= size
        return _APART.join(parts[at] for at in sorted(taken))

    async def summarise(clusters: Sequence[Cluster]) -> list[Summary]:
        return [Summary(extract(cluster.texts)) for cluster in clusters]

    return summarise
