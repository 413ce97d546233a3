"""Soft clustering by a Gaussian mixture whose number of components is the one of least BIC."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Membership = Literal["soft", "hard"]
Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """How the mixtures are fitted (RAPTOR: 49 components, threshold 0.1, soft).

    Attributes:
        max_components: counts tried are 1 … min(max_components, points - 1).
        threshold: the posterior from above which a point belongs to a component.
        membership: ``soft``: every component above the threshold; ``hard``: the most probable one.
        bic_points: with more points, each count is fitted to a seeded sample of so many, and its BIC is still that of all.
        seed: seeds the sample and every start.
        covariance: ``full``, or ``diag`` for points of many dimensions.
    """

    max_components: int = 49
    threshold: float = 0.1
    membership: Membership = "soft"
    bic_points: int = 5000
    seed: int = 224
    covariance: Literal["full", "diag"] = "full"

    def clusters(self, points: NDArray[np.float64]) -> list[Positions]:
        """Return the positions of each cluster's points, rising; every point is in at least one cluster.

        A point whose posteriors are all at or below the threshold goes to its most probable component: RAPTOR would
        lose it.
        """
        model = self._best(points)
        if model is None:
            return [np.arange(len(points))]
        posterior = np.asarray(model.predict_proba(points))
        member = np.zeros(posterior.shape, dtype=bool)
        member[np.arange(len(points)), posterior.argmax(axis=1)] = True
        if self.membership == "soft":
            member |= posterior > self.threshold
        return [np.flatnonzero(column) for column in member.T if column.any()]

    def _best(self, points: NDArray[np.float64]) -> Any:
        """Return the fitted mixture of least BIC, of two equal ones the smaller; None where one component is all there is."""
        distinct = len(np.unique(points, axis=0))
        most = min(self.max_components, len(points) - 1, distinct)
        if most < 2:
            return None
        sample = points
        if len(points) > self.bic_points:
            kept = np.random.default_rng(self.seed).choice(len(points), self.bic_points, replace=False)
            sample = points[np.sort(kept)]
        best, least = None, np.inf
        for count in range(1, most + 1):
            model = self._fit(sample, count)
            bic = float(model.bic(points))
            if bic < least:
                best, least = model, bic
        if best is not None and sample is not points:
            best = self._fit(points, best.n_components)
        return best

    def _fit(self, points: NDArray[np.float64], count: int) -> Any:
        from sklearn.mixture import GaussianMixture

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged in 100 rounds; fewer distinct points than components
            return GaussianMixture(count, covariance_type=self.covariance, random_state=self.seed).fit(points)
