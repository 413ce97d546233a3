"""The knowledge graph: entity names, named relations between them, and synonym edges (HippoRAG, G-retriever, ToG, DALK)."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph, Incidence, incidence
from graphrag_bench.registry import register

_APART = re.compile(r"[\W_]+")
_SYNONYM = "synonym of"
_TILE = 2048
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


@lru_cache(maxsize=1 << 18)
def phrase_key(name: str) -> str:
    """Return what makes two phrases the same node: case-folded, everything but letters, their marks and digits as one space."""
    if name.isascii():
        return _APART.sub(" ", name.casefold()).strip()
    folded = unicodedata.normalize("NFC", name.casefold())
    kept = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in folded)
    return " ".join(word for word in kept.split() if any(map(str.isalnum, word)))


@register("builder", "kg", version=2, provides=("node.name", "relationship.name", "relationship.weight"))
def build(
    chunks: ChunkTable,
    extraction: Extraction,
    embedder: Embedder,
    *,
    nodes: Literal["triples", "all"] = "triples",
    synonym_threshold: float | None = 0.8,
    synonym_top_k: int = 100,
) -> Graph:
    """Build the graph of the extracted triples.

    A node is a phrase up to case and punctuation; its name is the first spelling met. A relationship is a distinct
    (subject, relation, object); its weight counts the chunks that state it. Synonym edges join nodes whose names' cosine
    reaches the threshold and have more than two letters or digits (HippoRAG's rule); their weight is the cosine.

    Args:
        chunks: the corpus.
        extraction: entities and triples by chunk.
        embedder: embeds node names for synonym edges.
        nodes: only the phrases of triples, as HippoRAG has it, or every extracted entity as well.
        synonym_threshold: cosine from which two names are synonyms; null for no synonym edges.
        synonym_top_k: synonyms a node at most, its nearest.
    """
    ids: dict[str, int] = {}
    names: list[str] = []
    facts: dict[tuple[int, str, int], int] = {}
    relations: list[str] = []
    in_chunk: list[tuple[int, int]] = []
    stated: list[tuple[int, int]] = []

    def node(name: str) -> int:
        key = phrase_key(name)
        if key not in ids:
            ids[key] = len(names)
            names.append(name)
        return ids[key]

    for chunk, (entities, triples) in enumerate(zip(extraction.entities, extraction.triples, strict=True)):
        for subject, relation, object_ in triples:
            if not phrase_key(subject) or not phrase_key(object_):
                continue
            ends = node(subject), node(object_)
            fact = (ends[0], phrase_key(relation) or relation, ends[1])
            if fact not in facts:
                facts[fact] = len(facts)
                relations.append(relation)
            stated.append((facts[fact], chunk))
            in_chunk.extend((end, chunk) for end in ends)
        if nodes == "all":
            in_chunk.extend((node(name), chunk) for name in entities if phrase_key(name))

    stated_in = _pairs(stated, (len(facts), len(chunks)))
    source = np.fromiter((fact[0] for fact in facts), np.int64, len(facts))
    target = np.fromiter((fact[2] for fact in facts), np.int64, len(facts))
    weight = np.asarray(stated_in.sum(axis=1), dtype=np.float64).ravel()
    left, right, cosine = _synonyms(names, embedder, synonym_threshold, synonym_top_k)
    count = len(left)
    relationships = pa.table(
        {
            "source": pa.array(np.concatenate([source, left]), pa.int32()),
            "target": pa.array(np.concatenate([target, right]), pa.int32()),
            "kind": pa.array(["fact"] * len(facts) + ["synonym"] * count, pa.string()),
            "name": pa.array(relations + [_SYNONYM] * count, pa.string()),
            "weight": pa.array(np.concatenate([weight, cosine]), pa.float32()),
        }
    )
    return Graph(
        nodes=pa.table({"name": pa.array(names, pa.string())}),
        relationships=relationships,
        node_chunk=_pairs(in_chunk, (len(names), len(chunks))),
        relationship_chunk=_pairs(stated, (len(facts) + count, len(chunks))),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )


def _pairs(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> Incidence:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return incidence(array[:, 0], array[:, 1], shape)


def _synonyms(names: Sequence[str], embedder: Embedder, threshold: float | None, top_k: int) -> Pairs:
    """Return the pairs (smaller id first) whose cosine reaches the threshold, each among the nearest of one of its ends."""
    eligible = np.array(
        [number for number, name in enumerate(names) if sum(map(str.isalnum, phrase_key(name))) > 2], np.int64
    )
    if threshold is None or len(eligible) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    # all names are embedded, not the eligible ones alone: it is the very matrix the node index wants
    matrix = np.asarray(embedder.embed(names, "passage"))[eligible]
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for start in range(0, len(matrix), _TILE):  # tiles of the upper triangle only: cosine is symmetric
        for other in range(start, len(matrix), _TILE):
            scores = matrix[start : start + _TILE] @ matrix[other : other + _TILE].T
            a, b = np.nonzero(scores >= threshold)
            value = np.asarray(scores[a, b], dtype=np.float64).round(6)
            a, b = a + start, b + other
            keep = a < b
            found.append((a[keep].astype(np.int64), b[keep].astype(np.int64), value[keep]))
    a, b, value = (np.concatenate(part) for part in zip(*found, strict=True))
    keep = _near_enough(a, b, value, top_k)
    by_ids = np.lexsort((b[keep], a[keep]))
    return eligible[a[keep]][by_ids], eligible[b[keep]][by_ids], value[keep][by_ids]


def _near_enough(
    a: NDArray[np.int64], b: NDArray[np.int64], value: NDArray[np.float64], top_k: int
) -> NDArray[np.bool_]:
    """Mark the pairs that are among the top_k of either end."""
    ends = np.concatenate([a, b])
    others = np.concatenate([b, a])
    values = np.concatenate([value, value])
    by_end = np.lexsort((others, -values, ends))
    first = np.searchsorted(ends[by_end], np.arange(ends.max() + 2 if len(ends) else 1))
    rank = np.arange(len(ends)) - first[ends[by_end]]
    near = np.empty(len(ends), dtype=bool)
    near[by_end] = rank < top_k
    kept: NDArray[np.bool_] = near[: len(a)] | near[len(a) :]
    return kept
