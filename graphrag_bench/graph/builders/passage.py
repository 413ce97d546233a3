"""The passage graph: a node a chunk, joined where two chunks share entities or keywords, or are near (KGP)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.graph.linking import linked
from graphrag_bench.graph.sharing import pairs_of, sharing
from graphrag_bench.graph.tree.settings import check
from graphrag_bench.graph.wording import word_list
from graphrag_bench.registry import register

_NAMED = 3  # shared entities or keywords in a relationship's name, the rarest
_SIMILAR = "similar to"
_TILE = 1 << 23  # cosines held at a time
Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], pa.Array]


@register("builder", "passage", version=1, provides=("node.text",))
def build(
    chunks: ChunkTable,
    extraction: Extraction,
    embedder: Embedder,
    *,
    link: Literal["entities", "tfidf", "knn"] = "entities",
    min_shared: int = 1,
    link_threshold: float | None = 0.8,
    keywords: int = 10,
    knn: int = 10,
    max_chunks_per_entity: int = 100,
    max_pairs: int = 50_000_000,
) -> Built:
    """Build the graph of passages.

    Node i is chunk i. A relationship is undirected and stored once, from the smaller id; its weight is how many entities
    (keywords) the two share, or their cosine; its name holds the three rarest of what they share.

    What stands in very many chunks tells none of them apart, and joins each to each: such an entity joins nothing, and the
    pairs lost by it are counted. With at most m chunks an entity, relationships are at most (m - 1) / 2 a mention, so the
    graph stays linear in the corpus.

    Args:
        chunks: the corpus.
        extraction: whose entities are shared; only ``link=entities`` reads it.
        embedder: embeds entity names (``link=entities``) or passages (``link=knn``).
        link: entities: a mention is linked by its name, up to case and punctuation, and by its embedding; the document's
            title is always an entity. tfidf: the ``keywords`` of greatest TF-IDF weight a chunk. knn: the nearest chunks.
        min_shared: entities or keywords two chunks share at least. The unified paper's "more than τ" is τ + 1 here, its
            technical report's "at least τ" is τ.
        link_threshold: cosine from which a name is read as a more frequent one; null: by name alone.
        keywords: keywords a chunk, of those that stand in two chunks.
        knn: nearest chunks a chunk.
        max_chunks_per_entity: an entity or keyword in more chunks joins none.
        max_pairs: the run stops where more pairs than this would have to be looked at.

    Raises:
        UserError: A setting is below 1, or there would be too many pairs.
    """
    check(least={}, min_shared=min_shared, keywords=keywords, knn=knn, max_chunks_per_entity=max_chunks_per_entity)
    facts: dict[str, Any] = {"link": link}
    if link == "knn":
        written = np.array([chunk.id for chunk in chunks if chunk.text.strip()], np.int64)  # nothing is near to no text
        texts = [chunks[number].text for number in written]
        edges = _nearest(np.asarray(embedder.embed(texts, "passage")), written, knn)
    else:
        if link == "entities":
            names, matrix, merged = linked(chunks, extraction, embedder, link_threshold)
            facts["names_linked_by_embedding"] = merged
        else:
            names, matrix = _keywords([chunk.text for chunk in chunks], keywords)
        edges = _shared(names, matrix, min_shared, max_chunks_per_entity, max_pairs, facts)
    source, target, weight, name = edges
    count, size = len(source), len(chunks)
    rows = np.arange(count)
    graph = Graph(
        nodes=pa.table(
            {
                "name": pa.array([chunk.title or f"passage {chunk.id}" for chunk in chunks], pa.string()),
                "text": pa.array([chunk.text for chunk in chunks], pa.string()),
            }
        ),
        relationships=pa.table(
            {
                "source": pa.array(source, pa.int32()),
                "target": pa.array(target, pa.int32()),
                "kind": pa.array(["passage"] * count, pa.string()),
                "name": name,
                "weight": pa.array(weight, pa.float32()),
            }
        ),
        node_chunk=incidence(np.arange(size), np.arange(size), (size, size)),
        relationship_chunk=incidence(np.r_[rows, rows], np.r_[source, target], (count, size)),
        attributes=frozenset({"node.text"}),
    )
    return Built(graph, {**facts, "edges": count})


def _shared(
    names: Sequence[str],
    matrix: sparse.csr_array,
    min_shared: int,
    max_chunks: int,
    max_pairs: int,
    facts: dict[str, Any],
) -> Edges:
    """Join the rows of a binary (chunks, entities) matrix; note what was left out and how many pairs that lost."""
    sizes = np.bincount(matrix.indices, minlength=len(names)).astype(np.int64)
    common = sizes > max_chunks
    kept = np.flatnonzero(~common & (sizes > 1))
    facts.update(
        entities=len(names),
        entities_in_two_chunks=int((sizes > 1).sum()),
        entities_too_common=int(common.sum()),
        pairs_lost=pairs_of(sizes[common]),  # by entity: a pair that shares two of them counts twice
        pairs=pairs_of(sizes[kept]),
    )
    if facts["pairs"] > max_pairs:
        raise UserError(
            f"The passage graph would look at {facts['pairs']:,} pairs of chunks (graph.max_pairs={max_pairs}).",
            f"Lower graph.max_chunks_per_entity (now {max_chunks}), or raise graph.max_pairs.",
        )
    found = sharing(matrix[:, kept].tocsr(), min_shared, _NAMED)
    labels = pa.array([names[column] for column in kept.tolist()], pa.string())
    parts = [labels.take(pa.array(column, mask=column < 0)) for column in found.rarest.T]
    joined = (
        pc.binary_join_element_wise(*parts, pa.scalar(", "), null_handling="skip")
        if len(kept)
        else pa.array([], pa.string())
    )
    return found.source, found.target, found.shared.astype(np.float64), joined


def _keywords(texts: Sequence[str], most: int) -> tuple[list[str], sparse.csr_array]:
    """Return the words that stand in two texts, and the (texts, words) matrix of each text's weightiest, ties by word."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    seen: Counter[str] = Counter()
    # not scikit-learn's own list: it holds "bill", "fire", "mill" and "system"
    left_out = sorted(word_list("function"))
    read = TfidfVectorizer(stop_words=left_out).build_analyzer()
    for text in texts:
        seen.update(set(read(text)))
    words = sorted(word for word, count in seen.items() if count > 1)
    if not words:
        return [], incidence(np.empty(0, np.int64), np.empty(0, np.int64), (len(texts), 0))
    weights = TfidfVectorizer(stop_words=left_out, vocabulary=words).fit_transform(texts).tocsr()
    row = np.repeat(np.arange(len(texts)), np.diff(weights.indptr))
    order = np.lexsort((weights.indices, -weights.data.round(9), row))
    rank = np.arange(len(row)) - np.repeat(weights.indptr[:-1], np.diff(weights.indptr))
    top = order[rank < most]
    return words, incidence(row[top], weights.indices[top], (len(texts), len(words)))


def _nearest(vectors: NDArray[np.float32], ids: NDArray[np.int64], most: int) -> Edges:
    """Join each row to its nearest others (ties by id), where the cosine is above zero; ``ids`` name the rows, rising."""
    size = len(vectors)
    most = min(most, size - 1)
    tile = max(1, _TILE // max(size, 1))
    found: list[tuple[NDArray[Any], ...]] = []
    for start in range(0, size if most > 0 else 0, tile):
        scores = (vectors[start : start + tile] @ vectors.T).astype(np.float64).round(6)
        own = np.arange(len(scores))
        scores[own, start + own] = -np.inf
        last = -np.partition(-scores, most - 1, axis=1)[:, most - 1 : most]
        row, other = np.nonzero(scores >= last)
        value = scores[row, other]
        order = np.lexsort((other, -value, row))
        first = np.searchsorted(row, row)
        near = order[(np.arange(len(row)) - first < most) & (value[order] > 0)]
        found.append((row[near] + start, other[near], value[near]))
    a, b, cosine = (np.concatenate([part[at] for part in found] or [np.empty(0)]) for at in range(3))
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    _, where = np.unique(low * size + high, return_index=True)
    label = pa.array([_SIMILAR] * len(where), pa.string())
    return ids[low[where]], ids[high[where]], cosine[where], label
