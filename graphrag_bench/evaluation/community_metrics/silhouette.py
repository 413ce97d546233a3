"""The silhouette: is a node nearer to its own community than to the next one?"""

import numpy as np

from graphrag_bench.evaluation.divisions import Division
from graphrag_bench.registry import register

_PAIRS = 1 << 23  # distances held at a time: 64 MiB


@register(
    "community_metric",
    "silhouette",
    label="Silhouette",
    direction="higher",
    format="fraction",
    description="Mean of (b − a) / max(a, b): mean distance to the nearest other community, and to the own.",
)
def silhouette(division: Division, *, sample: int = 2_000, seed: int = 0) -> float | None:
    """Compute the mean silhouette of the nodes in a community, by Euclidean distance.

    Equal to scikit-learn's ``silhouette_score`` while there are at most ``sample`` nodes. Beyond, the mean is over a sample
    of nodes, each compared with every node there is: scikit-learn's own sampling drops nodes from both sides, which leaves
    of small communities nothing to compare with. A node that is a community of its own scores 0.

    Source: Rousseeuw (1987); METHODS §3.10.

    Args:
        division: the communities.
        sample: nodes scored at most; they are compared with all.
        seed: of the sample.

    Returns:
        None for a single community, and where every node is one of its own.
    """
    order, sizes, k = division.order, division.sizes, len(division.sizes)
    n = len(order)
    if not 1 < k < n:
        return None
    drawn = np.arange(n) if n <= sample else np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
    firsts = np.r_[0, np.cumsum(sizes)]
    rows = max(256, _PAIRS // (4 * k))
    total = 0.0
    for start in range(0, len(drawn), rows):
        places = drawn[start : start + rows]
        own, at = division.labels[order[places]], np.arange(len(places))
        x = division.vectors[order[places]].astype(np.float64)
        squares = np.square(x).sum(axis=1)
        sums = np.zeros((len(places), k))
        step = max(1, _PAIRS // len(places))
        for left in range(0, n, step):
            right = min(left + step, n)
            y = division.vectors[order[left:right]].astype(np.float64)
            apart = x @ y.T
            apart *= -2
            apart += squares[:, None]
            apart += np.square(y).sum(axis=1)
            np.sqrt(np.maximum(apart, 0, out=apart), out=apart)
            here = np.flatnonzero((places >= left) & (places < right))
            apart[here, places[here] - left] = 0  # a node and itself, exactly
            low = int(np.searchsorted(firsts, left, "right")) - 1  # the communities of this stretch of nodes
            high = int(np.searchsorted(firsts, right, "left"))
            sums[:, low:high] += np.add.reduceat(apart, np.maximum(firsts[low:high] - left, 0), axis=1)
        inside = sums[at, own] / np.maximum(sizes[own] - 1, 1)
        sums /= sizes
        sums[at, own] = np.inf
        outside = sums.min(axis=1)
        largest = np.maximum(inside, outside)
        score = np.divide(outside - inside, largest, out=np.zeros_like(largest), where=largest > 0)
        total += float(score[sizes[own] > 1].sum())
    return total / len(drawn)
