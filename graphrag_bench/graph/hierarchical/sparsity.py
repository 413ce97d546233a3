"""How finely a layer is divided: HiRAG's cluster sparsity, and how much it changes from layer to layer."""

from collections.abc import Iterable, Sequence
from itertools import pairwise


def cluster_sparsity(sizes: Iterable[int], nodes: int) -> float:
    """Return the share of ordered pairs of a layer's nodes that no cluster holds (HiRAG, Huang et al., 2025, section 4.1).

    CS = 1 − Σ |c| (|c| − 1) / (n (n − 1)). Clusters that share nodes count a pair once each, so it may be below zero.

    Args:
        sizes: nodes of each cluster; a cluster of one holds no pair.
        nodes: n, nodes of the layer.

    Returns:
        1 where no cluster holds two nodes, 0 where one holds all; 1 for a layer of one node or none.
    """
    if nodes < 2:
        return 1.0
    return 1.0 - sum(size * (size - 1) for size in sizes) / (nodes * (nodes - 1))


def change_rates(sparsity: Sequence[float]) -> list[float | None]:
    """Return how much each layer's sparsity differs from that of the layer before, as a share of the latter.

    None for the first layer; infinity for a change from nothing.
    """
    rates: list[float | None] = [None] if sparsity else []
    for before, now in pairwise(sparsity):
        gap = abs(now - before)
        rates.append(gap / abs(before) if before else float("inf") if gap else 0.0)
    return rates
