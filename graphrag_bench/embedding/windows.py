"""Texts longer than an embedder's window: where they are cut, and how the pieces become one vector again."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LongText = Literal["mean", "truncate"]

# The share of a window that repeats the end of the window before. Part of every identity, since it changes vectors.
OVERLAP = 0.25

# UTF-8 bytes a token, where the model's tokenizer is not at hand. English has about 4.5 and Chinese about 3, so that
# the estimate errs towards windows that are too short rather than cut by the server.
BYTES_PER_TOKEN = 3


def spans(length: int, window: int, long_text: LongText) -> list[tuple[int, int]]:
    """Return the [start, stop) spans of the windows over ``length`` units.

    Every window is full: the last one ends with the text and reaches back as far as it must, because the vector of a
    tail of a few words would count as much in the mean as that of a whole window.
    """
    if length <= window:
        return [(0, length)]
    if long_text == "truncate":
        return [(0, window)]
    step = max(1, window - int(window * OVERLAP))
    starts = [*range(0, length - window, step), length - window]
    return [(start, start + window) for start in starts]


def merge(rows: NDArray[Any], owners: Sequence[int], count: int) -> NDArray[np.float64]:
    """Return the mean of the (unit) rows of each owner, ``count`` owners; a single window is kept as it is."""
    total = np.zeros((count, rows.shape[1]))
    np.add.at(total, np.asarray(owners, dtype=np.intp), rows)
    return total / np.bincount(owners, minlength=count)[:, None]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, without a tokenizer; rather too many than too few."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def cut_text(text: str, max_tokens: int, long_text: LongText) -> list[str]:
    """Cut a text into windows of at most about ``max_tokens`` tokens, by the estimate."""
    tokens = estimate_tokens(text)
    if tokens <= max_tokens:
        return [text]
    characters = max(1, len(text) * max_tokens // tokens)
    return [text[start:stop] for start, stop in spans(len(text), characters, long_text) if text[start:stop].strip()]
