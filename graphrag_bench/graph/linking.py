"""Entity linking without a web service: mentions that are one entity by their name, or by its embedding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Incidence, incidence
from graphrag_bench.graph.matching import most_frequent, same_numbers
from graphrag_bench.graph.synonyms import phrase_key, synonyms
from graphrag_bench.graph.wording import bare_title

_TOP = 100  # nearest names looked at, as in the knowledge graph


def linked(
    chunks: ChunkTable, extraction: Extraction, embedder: Embedder, threshold: float | None
) -> tuple[list[str], Incidence, int]:
    """Return the entities of a corpus and which chunk holds which.

    A chunk's mentions are its extracted entities (the ends of its triples where it has none) and its title, as KGP has it.
    A mention without a letter is a number, and links nothing. By embedding a name is read as the most frequent name whose
    cosine reaches the threshold and whose digits are the same ("World War 1" is not "World War 2"); a name others are read
    as is read as itself, so nothing is chained.

    Args:
        chunks: the corpus.
        extraction: its entities by chunk.
        embedder: embeds the names.
        threshold: cosine from which two names are one entity; None: by name alone.

    Returns:
        The entities' names, a binary (chunks, entities) matrix, and how many names were read as another.
    """
    ids: dict[str, int] = {}
    names: list[str] = []
    seen: dict[tuple[int, int], None] = {}
    for chunk, mentions, triples in zip(chunks, extraction.entities, extraction.triples, strict=True):
        title = bare_title(chunk.title)
        spoken = mentions or [end for subject, _, object_ in triples for end in (subject, object_)]
        for name in (title, *(name for name in spoken if any(map(str.isalpha, name)))):
            if key := phrase_key(name):
                if key not in ids:
                    ids[key] = len(names)
                    names.append(name)
                seen[chunk.id, ids[key]] = None
    pairs = np.array(list(seen), np.int64).reshape(-1, 2)
    entity = _read_as(names, np.bincount(pairs[:, 1], minlength=len(names)), embedder, threshold)
    kept, column = np.unique(entity, return_inverse=True)
    matrix = incidence(pairs[:, 0], column[pairs[:, 1]], (len(chunks), len(kept)))
    return [names[number] for number in kept], matrix, len(names) - len(kept)


def _read_as(
    names: Sequence[str], chunks: NDArray[np.int64], embedder: Embedder, threshold: float | None
) -> NDArray[np.int64]:
    """Return for each name the name it is read as: itself, or a more frequent one near it."""
    near = zip(*(side.tolist() for side in synonyms(names, embedder, threshold, _TOP)[:2]), strict=True)
    return most_frequent(chunks, [(a, b) for a, b in near if same_numbers(names[a], names[b])])
