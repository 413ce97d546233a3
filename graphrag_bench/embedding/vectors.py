"""What every embedder does to its texts before, and to its rows after."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.errors import UserError

_SHOWN = 60


def check_texts(texts: Sequence[str]) -> None:
    """Refuse blank texts: no model gives them a meaning, and a made-up vector would be similar to something.

    Raises:
        UserError: A text is empty or only white space; the sentence names its position.
    """
    for position, text in enumerate(texts):
        if not text.strip():
            raise UserError(
                f"Text {position + 1} of {len(texts)} is empty, and an empty text cannot be embedded.",
                "Drop empty passages and names before embedding them.",
            )


def unit_rows(rows: NDArray[Any], texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the rows as float32 of length 1; ``texts`` are only for the message.

    Raises:
        UserError: A row is zero or not finite, so it has no direction.
    """
    wide = np.asarray(rows, dtype=np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    bad = ~np.isfinite(norms[:, 0]) | (norms[:, 0] == 0)
    if bad.any():
        row = int(np.argmax(bad))
        shown = texts[row] if len(texts[row]) <= _SHOWN else texts[row][:_SHOWN] + "…"
        what = "zeros only" if norms[row, 0] == 0 else "values that are not finite numbers"
        raise UserError(
            f"The embedder made a vector of {what} for the text {shown!r}.",
            "Check the embedding model; drop the text if it holds no words.",
        )
    unit: NDArray[np.float32] = (wide / norms).astype(np.float32)
    return unit


def no_rows(dim: int) -> NDArray[np.float32]:
    """Return the embedding of no text at all."""
    return np.empty((0, dim), dtype=np.float32)
