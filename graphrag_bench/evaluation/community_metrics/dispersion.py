"""Metrics that compare nodes with the means of their communities: they cost one pass over the vectors."""

import numpy as np

from graphrag_bench.evaluation.divisions import Division, Floats
from graphrag_bench.registry import register

_PAIRS = 1 << 24  # distances between communities held at a time: 128 MiB


@register(
    "community_metric",
    "chi",
    label="CHI",
    direction="higher",
    format="number",
    description="Calinski–Harabasz index of the nodes' vectors: spread between communities over spread within.",
)
def chi(division: Division) -> float | None:
    """Compute the Calinski–Harabasz index over the nodes in a community: (B / (k − 1)) / (W / (n − k)).

    B sums the squared distances of the communities' means from the mean of all, times their sizes, W those of the nodes
    from their community's mean. Equal to scikit-learn's ``calinski_harabasz_score``, whose loop over communities does not
    end for 50,000 of them; where W is 0 the index is 1, as there.

    Source: Caliński & Harabasz (1974); ArchRAG's CHI (METHODS §3.10).

    Returns:
        None for a single community, and where every node is one of its own.
    """
    n, k = int(division.sizes.sum()), len(division.sizes)
    if not 1 < k < n:
        return None
    centre = division.sizes @ division.means / n
    between = float(division.sizes @ np.square(division.means - centre).sum(axis=1))
    within = sum(
        float(np.square(block - division.means[division.labels[nodes]]).sum()) for nodes, block in division.blocks()
    )
    return 1.0 if within == 0 else between * (n - k) / (within * (k - 1))


@register(
    "community_metric",
    "similarity",
    label="Cosine similarity",
    direction="higher",
    format="fraction",
    description="Mean cosine of a node's vector and its community's mean; a node in no community counts as 0.",
)
def similarity(division: Division) -> float | None:
    """Compute (1 / #nodes) Σ cos(node, mean of its community); a node in no community adds nothing, and is counted.

    A node that is a community of its own is as similar to it as can be, so many small communities score high: compare
    only divisions of about as many.

    Source: ArchRAG's Sim (METHODS §3.10).
    """
    if not division.n_nodes:
        return None
    lengths = np.linalg.norm(division.means, axis=1)
    total = 0.0
    for nodes, block in division.blocks():
        label = division.labels[nodes]
        product = np.einsum("ij,ij->i", block, division.means[label])
        norm = np.linalg.norm(block, axis=1) * lengths[label]
        total += float(np.divide(product, norm, out=np.zeros_like(product), where=norm > 0).sum())
    return total / division.n_nodes


@register(
    "community_metric",
    "davies_bouldin",
    label="Davies–Bouldin",
    direction="lower",
    format="fraction",
    description="Mean over communities of the worst ratio of two spreads to the distance of the two means.",
)
def davies_bouldin(division: Division, *, sample: int = 5_000, seed: int = 0) -> float | None:
    """Compute the Davies–Bouldin index: the mean over i of max over j of (s_i + s_j) / |m_i − m_j|.

    s is the mean distance of a community's nodes from its mean m. Equal to scikit-learn's ``davies_bouldin_score`` while
    there are at most ``sample`` communities; beyond, the mean is over a sample of i, each still compared with every j.

    Source: Davies & Bouldin (1979); METHODS §3.10.

    Args:
        division: the communities.
        sample: communities whose worst neighbour is looked for at most.
        seed: of the sample.

    Returns:
        None for a single community, and where every node is one of its own.
    """
    n, k = int(division.sizes.sum()), len(division.sizes)
    if not 1 < k < n:
        return None
    distances = np.concatenate(
        [np.linalg.norm(block - division.means[division.labels[nodes]], axis=1) for nodes, block in division.blocks()]
    )
    spread = division.by_community(distances) / division.sizes
    means = division.means
    if np.allclose(spread, 0) or np.allclose(means, means[0]):
        return 0.0  # as scikit-learn has it
    chosen = np.arange(k) if k <= sample else np.sort(np.random.default_rng(seed).choice(k, sample, replace=False))
    squares = np.square(means).sum(axis=1)
    step = max(1, _PAIRS // k)
    worst: list[Floats] = []
    for start in range(0, len(chosen), step):
        rows = chosen[start : start + step]
        apart = np.sqrt(np.maximum(squares[rows, None] + squares - 2 * means[rows] @ means.T, 0))
        apart[np.arange(len(rows)), rows] = 0
        apart[apart == 0] = np.inf  # a community and itself, and means that coincide
        worst.append(((spread[rows, None] + spread) / apart).max(axis=1))
    return float(np.concatenate(worst).mean())
