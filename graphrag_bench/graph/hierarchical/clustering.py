"""How the entities of a layer are clustered: one Gaussian mixture over a projection of all of them."""

from dataclasses import dataclass
from typing import Any

from numpy import arange
from numpy.typing import NDArray

from graphrag_bench.graph.tree.mixture import Mixture, Positions
from graphrag_bench.graph.tree.projection import Reduction, project


@dataclass(frozen=True)
class OneMixture:
    """HiRAG's clustering: RAPTOR's first step alone, in two dimensions.

    Attributes:
        mixture: how mixtures are fitted.
        reduction: how vectors are projected.
        dimensions: dimensions to project to; so many nodes and one more are never divided.
        neighbours: UMAP's.
        seed: UMAP's.
    """

    mixture: Mixture
    reduction: Reduction = "umap"
    dimensions: int = 2
    neighbours: int = 15
    seed: int = 0

    def __call__(self, vectors: NDArray[Any]) -> list[Positions]:
        """Return the positions of the nodes of each cluster."""
        if len(vectors) <= self.dimensions + 1:
            return [arange(len(vectors))]
        near = min(self.neighbours, len(vectors) - 1)
        points = project(vectors, self.reduction, dimensions=self.dimensions, neighbours=near, seed=self.seed)
        return self.mixture.clusters(points)
