"""Recall–QPS curves, and how many times as fast one of them is as another at equal recall.

The rule: of a curve only the points count that no other point of it beats in both recall and QPS. Between two of them log QPS
is a straight line over log(1 - recall); beyond the first (which is as good at every lesser recall) it is level, beyond the
last there is nothing. Recall 1 counts as half a miss among all that was asked for. The mean ratio is the geometric mean at
places spaced evenly in log(1 - recall) over the recalls between the greater of both curves' least and the lesser of their
greatest; a curve of one point, as exact search is, counts from recall 0.
"""

import math
from collections.abc import Sequence

import numpy as np

AT = (0.99, 0.995, 0.998, 0.999)
PLACES = 101
Point = tuple[float, float]  # recall, QPS


class Curve:
    """One contestant's points in the plane of recall and QPS; ``asked`` is how many neighbours recall was counted over."""

    def __init__(self, points: Sequence[Point], asked: int) -> None:
        self.least_miss = 0.5 / asked
        best: list[Point] = []
        for recall, qps in sorted(points, key=lambda one: (-one[0], -one[1])):
            if not best or qps > best[-1][1]:
                best.append((recall, qps))
        best = [point for at, point in enumerate(best) if at + 1 == len(best) or best[at + 1][0] < point[0]]
        best.reverse()
        self.recalls = [recall for recall, _ in best]
        self._misses = [self._x(recall) for recall in self.recalls]
        self._speeds = [math.log(qps) for _, qps in best]

    def _x(self, recall: float) -> float:
        return -math.log(max(1.0 - recall, self.least_miss))

    def qps(self, recall: float) -> float | None:
        """Return the QPS at a recall, None where the curve does not reach it."""
        return self._at(self._x(recall))

    def _at(self, x: float) -> float | None:
        return math.exp(np.interp(x, self._misses, self._speeds)) if x <= self._misses[-1] + 1e-12 else None

    def span(self) -> tuple[float, float]:
        """Return the least and the greatest of -log(1 - recall)."""
        return self._misses[0] if len(self._misses) > 1 else 0.0, self._misses[-1]

    def ratio_to(self, other: "Curve", recall: float) -> float | None:
        """Return this one's QPS over the other's at a recall, None where either does not reach it."""
        ours, theirs = self.qps(recall), other.qps(recall)
        return ours / theirs if ours is not None and theirs is not None else None

    def mean_ratio_to(self, other: "Curve") -> dict[str, float] | None:
        """Return the geometric mean of the ratio, and between which recalls; None if the curves share no recall."""
        (low, high), (low_2, high_2) = self.span(), other.span()
        low, high = max(low, low_2), min(high, high_2)
        if high < low:
            return None
        places = np.linspace(low, high, PLACES)
        logs = [math.log(self._at(x) or math.nan) - math.log(other._at(x) or math.nan) for x in places]
        mean = math.exp(float(np.mean(logs)))
        return {"geometric_mean": mean, "from_recall": 1 - math.exp(-low), "to_recall": 1 - math.exp(-high)}


def compare(ours: Curve, theirs: Curve) -> dict[str, object]:
    """Return the ratios at the recalls named above, where both reach them, and the mean."""
    ratios = {f"{recall:g}": ours.ratio_to(theirs, recall) for recall in AT}
    return {"at_recall": ratios, "mean": ours.mean_ratio_to(theirs)}
