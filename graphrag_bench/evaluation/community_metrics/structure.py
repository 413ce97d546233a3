"""Metrics of the graph alone: how much of its weight lies within communities, and how large these are."""

import numpy as np

from graphrag_bench.evaluation.divisions import Division
from graphrag_bench.registry import register


@register(
    "community_metric",
    "modularity",
    label="Modularity",
    direction="higher",
    format="fraction",
    description="Share of the facts' weight within communities, less what chance would put there.",
)
def modularity(division: Division) -> float | None:
    """Compute the weighted modularity of the division on the undirected simple view of the facts, resolution 1.

    The graph is the one before augmentation, so that divisions are compared on the same edges. A node in no community is
    one of its own. Equal to networkx's ``modularity``.

    Source: Newman (2004).

    Returns:
        None where there is no edge.
    """
    left, right, weight = division.edges
    if not len(weight):
        return None
    lone = division.labels < 0
    labels = division.labels.copy()
    labels[lone] = len(division.sizes) + np.arange(int(lone.sum()))
    count = len(division.sizes) + int(lone.sum())
    inside = float(weight[labels[left] == labels[right]].sum())
    degree = np.bincount(labels[left], weights=weight, minlength=count)
    degree += np.bincount(labels[right], weights=weight, minlength=count)
    total = float(weight.sum())
    return inside / total - float(np.square(degree / (2 * total)).sum())


@register(
    "community_metric",
    "count",
    label="Communities",
    direction="",
    format="count",
    description="How many communities there are.",
)
def count(division: Division) -> float | None:
    """Count the communities: divisions into many and into few cannot be compared by the other metrics."""
    return float(len(division.sizes))


@register(
    "community_metric",
    "clustered",
    label="In a community",
    direction="",
    format="percent",
    description="Share of the nodes that are in a community.",
)
def clustered(division: Division) -> float | None:
    """Compute the share of the nodes that are in a community."""
    return float(division.sizes.sum()) / division.n_nodes if division.n_nodes else None


@register(
    "community_metric",
    "median_size",
    label="Median size",
    direction="",
    format="number",
    description="Nodes of the median community.",
)
def median_size(division: Division) -> float | None:
    """Compute the median number of nodes of a community."""
    return float(np.median(division.sizes)) if len(division.sizes) else None


@register(
    "community_metric",
    "mean_size",
    label="Mean size",
    direction="",
    format="number",
    description="Nodes of a community on average.",
)
def mean_size(division: Division) -> float | None:
    """Compute the mean number of nodes of a community."""
    return float(division.sizes.mean()) if len(division.sizes) else None


@register(
    "community_metric",
    "largest",
    label="Largest",
    direction="",
    format="count",
    description="Nodes of the largest community.",
)
def largest(division: Division) -> float | None:
    """Return the number of nodes of the largest community."""
    return float(division.sizes.max(initial=0))


@register(
    "community_metric",
    "singletons",
    label="Singletons",
    direction="",
    format="count",
    description="Communities of a single node.",
)
def singletons(division: Division) -> float | None:
    """Count the communities of a single node."""
    return float(np.sum(division.sizes == 1))


@register(
    "community_metric",
    "share_in_largest",
    label="In the largest",
    direction="",
    format="percent",
    description="Share of the nodes in a community that are in the largest.",
)
def share_in_largest(division: Division) -> float | None:
    """Compute the share of the clustered nodes that are in the largest community."""
    return float(division.sizes.max() / division.sizes.sum()) if len(division.sizes) else None
