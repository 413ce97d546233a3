"""Exact search: every vector is scored, so there is no engine to build."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.registry import register


@register("index", "exact")
class Exact:
    """Score every vector."""

    approximate = False

    def __init__(self) -> None:
        pass

    def build(self, matrix: NDArray[np.float32], folder: Path) -> dict[str, Any]:
        """Write nothing: the vectors themselves are all that is searched."""
        return {"vectors": len(matrix)}

    def open(self, folder: Path) -> None:
        """Return no engine."""
        return None
