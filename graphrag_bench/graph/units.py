"""Where the text units of somebody else's index lie among our chunks."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.errors import UserError

_WORDS = 8  # words of a shingle: a run that two texts hardly share by chance
_SHARE = 0.2  # of the shorter text's shingles, for two overlapping windows to count as the same place
_WORD = re.compile(r"\w+")


class TextUnits:
    """Finds the chunks of a text unit, by what is known of it, the surest first.

    A unit is a chunk of the same text, white space apart; or its id is the id of a document, or LightRAG's ``chunk-`` and
    the MD5 of a text; or its text and a chunk's overlap, as windows of two sizes over one document do.

    Args:
        chunks: ours.
        texts: the texts of the units, by id, where the index has them.
    """

    def __init__(self, chunks: ChunkTable, texts: Mapping[str, str]) -> None:
        self._chunks = chunks
        self._texts = texts
        self._found: dict[str, tuple[int, ...]] = {}
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._by_document: dict[str, list[int]] = defaultdict(list)
        self._by_md5: dict[str, list[int]] = defaultdict(list)
        self._shingles: dict[int, list[int]] | None = None
        self._sizes: list[int] = []
        self._lower: dict[int, str] = {}
        for chunk in chunks:
            for text in _spellings(chunk):
                self._by_text[_key(text)].append(chunk.id)
                digest = hashlib.md5(text.strip().encode(), usedforsecurity=False).hexdigest()
                self._by_md5[f"chunk-{digest}"].append(chunk.id)
            for document in chunk.documents:
                self._by_document[document].append(chunk.id)

    def chunks(self, unit: str, *names: str) -> list[int]:
        """Return the chunks of a unit, rising; of several, those that hold one of the names, or the first where none does."""
        found = self._of(unit)
        if len(found) < 2 or not names:
            return list(found)
        wanted = [name.casefold() for name in names]
        holding = [chunk for chunk in found if any(name in self._text(chunk) for name in wanted)]
        return holding or list(found[:1])

    def account(self) -> dict[str, int]:
        """Return how many units were looked for, and how many of them no chunk was found for."""
        return {
            "text_units": len(self._found),
            "text_units_without_chunk": sum(not row for row in self._found.values()),
        }

    def check(self, where: Path, hint: str) -> None:
        """Raise UserError where units were looked for and none is any of the chunks."""
        if self._found and not any(self._found.values()):
            raise UserError(
                f"None of the {len(self._found):,} text units that {where} speaks of is one of the chunks.",
                f"Take the corpus that was indexed there, with the text units as documents; {hint}",
            )

    def _of(self, unit: str) -> tuple[int, ...]:
        if unit not in self._found:
            text = self._texts.get(unit, "")
            found = (
                (text.strip() and self._by_text.get(_key(text)))
                or self._by_document.get(unit)
                or self._by_md5.get(unit)
                or (text.strip() and self._overlapping(text))
                or ()
            )
            self._found[unit] = tuple(sorted(set(found)))
        return self._found[unit]

    def _text(self, chunk: int) -> str:
        if chunk not in self._lower:
            self._lower[chunk] = self._chunks[chunk].text.casefold()
        return self._lower[chunk]

    def _overlapping(self, text: str) -> list[int]:
        if self._shingles is None:
            self._shingles = defaultdict(list)
            for chunk in self._chunks:
                rows = _shingles(chunk.text)
                self._sizes.append(len(rows))
                for row in rows:
                    self._shingles[row].append(chunk.id)
        own = _shingles(text)
        shared = Counter(chunk for row in own for chunk in self._shingles.get(row, ()))
        return [chunk for chunk, count in shared.items() if count >= _SHARE * min(len(own), self._sizes[chunk])]


def _spellings(chunk: Chunk) -> list[str]:
    """Return a chunk's text with and without its title's line, each once."""
    text, title = chunk.text, f"{chunk.title}\n"
    if not chunk.title:
        return [text]
    return [text, text.removeprefix(title) if text.startswith(title) else title + text]


def _key(text: str) -> str:
    return "".join(text.split())


def _shingles(text: str) -> set[int]:
    words = _WORD.findall(text.casefold())
    runs = (" ".join(words[at : at + _WORDS]) for at in range(max(1, len(words) - _WORDS + 1)))
    return {int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest(), "big") for run in runs}
