"""KET-RAG's choice of chunks: those most central in a graph that joins each chunk to its nearest ones."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.graph import Incidence, incidence
from graphrag_bench.graph.wording import word_list

_TILE = 1 << 22  # scores held at a time
_DAMPING = 0.85
_DIGITS = 9


def central_chunks(chunks: ChunkTable, embedder: Embedder, share: float, nearest: int) -> NDArray[np.int64]:
    """Return the chunks that the skeleton graph is extracted from, by rising id.

    Each chunk is joined to the ``nearest`` chunks that share most distinct words with it, function words left out, and to
    as many of greatest cosine; ties by id. The simple undirected graph of both is ranked by PageRank with damping 0.85
    (Huang, Zhang and Xiao, 2025, section 4.1, and the authors' code).

    Args:
        chunks: the corpus.
        embedder: embeds the chunks.
        share: of the chunks to take (β), rounded up.
        nearest: of each of the two kinds.

    Raises:
        UserError: A setting is out of its range.
    """
    if not 0 < share <= 1:
        raise UserError(f"graph.share is {share}.", "Write a share above 0 and at most 1; KET-RAG's is 0.8.")
    if nearest < 1:
        raise UserError(f"graph.nearest_chunks is {nearest}.", "Write 1 or more.")
    wanted = int(np.ceil(round(share * len(chunks), _DIGITS)))
    if wanted == len(chunks):
        return np.arange(len(chunks))
    texts = [chunk.text for chunk in chunks]
    vectors = np.asarray(embedder.embed(texts, "passage"))
    words = distinct_words(texts)
    pairs = np.concatenate([_nearest(vectors, None, nearest), _nearest(None, words, nearest)])
    rank = pagerank(incidence(pairs[:, 0], pairs[:, 1], (len(chunks), len(chunks))))
    return np.sort(np.lexsort((np.arange(len(chunks)), -rank.round(_DIGITS)))[:wanted])


def distinct_words(texts: list[str]) -> Incidence:
    """Return (texts, words) with 1 where a text has a word; function words are left out."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        binary=True, stop_words=sorted(word_list("function")), token_pattern=r"(?u)\b[^\W\d_]{2,}\b"
    )
    try:
        return sparse.csr_array(counter.fit_transform(texts), dtype=np.float32)
    except ValueError:  # not a word in any text
        return incidence(np.empty(0, np.int64), np.empty(0, np.int64), (len(texts), 1))


def _nearest(vectors: NDArray[np.float32] | None, words: Incidence | None, most: int) -> NDArray[np.int64]:
    """Return pairs of each row and its nearest others, by cosine or by how many words they share; ties by id."""
    size = (vectors if vectors is not None else words).shape[0]  # type: ignore[union-attr]
    most = min(most, size - 1)
    if most < 1:
        return np.empty((0, 2), np.int64)
    tile, found = max(1, _TILE // size), []
    for start in range(0, size, tile):
        if vectors is not None:
            scores = (vectors[start : start + tile] @ vectors.T).astype(np.float64).round(6)
        else:
            assert words is not None
            scores = (words[start : start + tile] @ words.T).toarray().astype(np.float64)
        own = np.arange(len(scores))
        scores[own, start + own] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        kept = np.take_along_axis(scores, best, axis=1) > 0
        row = np.broadcast_to(start + own[:, None], best.shape)
        found.append(np.column_stack([row[kept], best[kept]]))
    return np.concatenate(found).astype(np.int64)


def pagerank(
    joined: Incidence, damping: float = _DAMPING, tolerance: float = 1e-12, rounds: int = 500
) -> NDArray[np.float64]:
    """Return the PageRank of the nodes of an undirected simple graph; what has no neighbour spreads evenly.

    Args:
        joined: (n, n), 1 where one is joined to the other, in either direction; the diagonal does not count.
        damping: probability to follow an edge.
        tolerance: the summed change at which to stop.
        rounds: at most.
    """
    n = joined.shape[0]
    both = sparse.csr_array(joined + joined.T)
    both.data[:] = 1.0
    both = sparse.csr_array(both - sparse.diags_array(both.diagonal()))
    degree = np.asarray(both.sum(axis=1)).ravel()
    rank = np.full(n, 1.0 / max(n, 1))
    for _ in range(rounds):
        share = np.divide(rank, degree, out=np.zeros(n), where=degree > 0)
        new = damping * (both @ share + rank[degree == 0].sum() / n) + (1.0 - damping) / n
        if np.abs(new - rank).sum() < tolerance:
            return np.asarray(new)
        rank = new
    return rank
