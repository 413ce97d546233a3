"""The Embedder protocol."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Role = Literal["passage", "query"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors. ``identity`` is everything that can change a vector; it keys the store."""

    identity: Mapping[str, Any]
    dim: int

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return an (n, dim) float32 array of L2-normalised vectors, one a text, in order."""
        ...

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the embedder's window."""
        ...
