"""The sentences of chunks that mention given names."""

import re
from collections.abc import Sequence

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.synonyms import phrase_key

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")


class Sentences:
    """The chunks' sentences, cut when first asked for and kept.

    Args:
        chunks: the corpus.
    """

    def __init__(self, chunks: ChunkTable) -> None:
        self._chunks = chunks
        self._cut: dict[int, list[tuple[str, str]]] = {}

    def of(self, chunk: int) -> list[tuple[str, str]]:
        """Return a chunk's sentences in order, the title's line left out, each with its words between spaces."""
        if chunk not in self._cut:
            title, text = self._chunks[chunk].title, self._chunks[chunk].text
            parts = (" ".join(part.split()) for part in _END.split(text) if part.strip() != title.strip())
            self._cut[chunk] = [(part, f" {phrase_key(part)} ") for part in parts if part]
        return self._cut[chunk]

    def mentioning(self, names: Sequence[str], chunks: Sequence[int]) -> list[str]:
        """Return the sentences that mention the most of the names, ties in the order of the corpus; each text once.

        Args:
            names: whole words of a sentence, up to case and punctuation.
            chunks: where to look.
        """
        wanted = [f" {key} " for name in dict.fromkeys(names) if (key := phrase_key(name))]
        found = [
            (-hits, chunk, place, text)
            for chunk in sorted(chunks)
            for place, (text, words) in enumerate(self.of(chunk))
            if (hits := sum(name in words for name in wanted))
        ]
        return list(dict.fromkeys(text for *_, text in sorted(found)))
