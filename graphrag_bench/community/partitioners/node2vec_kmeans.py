"""node2vec (Grover and Leskovec, 2016) and k-means: nodes that random walks see together belong together."""

import warnings
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.augmented import symmetric
from graphrag_bench.community.kmeans import kmeans
from graphrag_bench.community.layered import Layer
from graphrag_bench.community.walks import random_walks
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("partitioner", "node2vec_kmeans")
def node2vec_kmeans(
    layer: Layer,
    *,
    mean_size: int = 15,
    dimensions: int = 128,
    walks: int = 10,
    walk_length: int = 80,
    p: float = 1.0,
    q: float = 1.0,
    context_size: int = 10,
    epochs: int = 1,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Divide n nodes that have an edge into ⌈n / ``mean_size``⌉ clusters by k-means on node2vec's vectors.

    The walks are our own; the vectors are learnt by the library that the node2vec package uses, gensim's skip-gram, in one
    thread. Vectors are scaled to length 1 for k-means. A node without an edge is alone.

    Args:
        layer: its edges are the augmented and weighted ones.
        mean_size: mean nodes a cluster.
        dimensions: of a node's vector.
        walks: from each node.
        walk_length: nodes of a walk.
        p: return parameter: below 1 walks turn back more often.
        q: in-out parameter: below 1 walks go further out.
        context_size: nodes on either side in a walk that a node is taught to foretell.
        epochs: times the walks are gone through.
        seed: of walks, vectors and k-means.

    Raises:
        UserError: A setting is out of its range, or gensim is not installed.
    """
    for name, value, least in (
        ("mean_size", mean_size, 1), ("dimensions", dimensions, 2), ("walks", walks, 1), ("walk_length", walk_length, 2),
        ("context_size", context_size, 1), ("epochs", epochs, 1),
    ):  # fmt: skip
        if value < least:
            raise UserError(f"community.{name} is {value}.", f"Write {least} or more.")
    for name, share in (("p", p), ("q", q)):
        if not 0 < share < inf:
            raise UserError(f"community.{name} is {share}.", "Write a number above 0.")
    paths = random_walks(symmetric(layer.edges, len(layer)), walks, walk_length, p, q, seed)
    labels = np.arange(len(layer))
    if len(paths):
        nodes, vectors = skip_gram(paths, dimensions, context_size, epochs, seed)
        points = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        labels[nodes] = len(layer) + kmeans(points, -(-len(nodes) // mean_size), seed)
    return labels


def skip_gram(
    paths: NDArray[np.int64], dimensions: int, context_size: int, epochs: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the nodes that walks meet, by rising id, and a vector each, by skip-gram with negative sampling.

    Args:
        paths: (walks, length) node ids.
        dimensions: of a vector.
        context_size: nodes on either side.
        epochs: times the walks are gone through.
        seed: of first vectors and what is drawn.

    Raises:
        UserError: gensim is not installed.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise UserError(
            "community.partition=node2vec_kmeans needs the library gensim, which is not installed.",
            "Run: pip install 'graphrag-bench[node2vec]'; or use another partitioner.",
        ) from None
    nodes, codes = np.unique(paths, return_inverse=True)
    words = [str(node) for node in nodes.tolist()]
    rows: Any = codes.reshape(paths.shape).tolist()
    sentences = [[words[code] for code in row] for row in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # sample=0: nothing of frequent words is left out, which in a graph of under a thousand nodes would be most of them
        model: Any = Word2Vec(
            sentences, vector_size=dimensions, window=context_size, epochs=epochs,
            sg=1, min_count=1, sample=0, workers=1, seed=seed,
        )  # fmt: skip
    return nodes, np.stack([model.wv[word] for word in words])
