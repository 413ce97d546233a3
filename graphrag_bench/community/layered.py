"""What clusterers that work layer by layer are made of: the layer, the parts they are lent, and what they return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.community.augmented import Augmented
from graphrag_bench.community.simple import Edges
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.graph.graph import Graph


class Layer(NamedTuple):
    """The attributed graph of one layer: entities, or the communities below.

    Attributes:
        vectors: (nodes, width) single-precision unit vectors; a row of zeros where there is nothing to embed.
        edges: the undirected simple graph: smaller node, larger node, positive weight; by the nodes, each pair once.
    """

    vectors: NDArray[np.float32]
    edges: Edges

    def __len__(self) -> int:
        return len(self.vectors)


class Augment(Protocol):
    """A registered component of kind ``augmenter`` with its settings: which nodes clustering shall see joined."""

    def __call__(self, layer: Layer) -> Edges | Augmented:
        """Return the edges to cluster, in the form of a layer's: those there were, and new ones between similar nodes.

        They may come with facts for the artifact (how neighbours were searched). What an edge weighs is the layer's weight,
        or the augmentation's own; the clusterer may weigh them anew.
        """
        ...


class Partition(Protocol):
    """A registered component of kind ``partitioner`` with its settings: one layer divided once."""

    def __call__(self, layer: Layer) -> NDArray[np.int64]:
        """Return a label a node, any numbers; the layer's edges are the augmented and weighted ones."""
        ...


class ReportWriter(Protocol):
    """The run's report builder, lent to a clusterer whose next layer hangs on what the reports on the last one say."""

    async def __call__(self, graph: Graph, written: Reports | None) -> Reports:
        """Return a report on every community of the graph's hierarchy.

        Args:
            graph: with the communities found so far.
            written: the reports on its last communities, which need not be written again.
        """
        ...


@dataclass(frozen=True, eq=False)
class Clustered:
    """What a clusterer found, where it is more than the hierarchy.

    Attributes:
        hierarchy: the communities.
        reports: on them, where the clusterer had them written.
        facts: for the artifact: what was added, cut, left alone, layer by layer.
    """

    hierarchy: Hierarchy
    reports: Reports | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
