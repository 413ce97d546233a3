"""A memory in front of an embedder, and the account of what was embedded."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder, Role
from graphrag_bench.embedding.vectors import no_rows
from graphrag_bench.embedding.windows import estimate_tokens


@dataclass
class EmbeddingStats:
    """What a run asked of its embedder.

    ``tokens`` is an estimate (UTF-8 bytes / 3). ``cpu_seconds`` is that of the whole process while the embedder worked,
    so it counts its threads, and whatever else ran beside them.
    """

    calls: int = 0
    asked: int = 0
    embedded: int = 0
    tokens: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


class CachedEmbedder:
    """An embedder that remembers: each text once a call, and the most recent texts across calls.

    Made for questions, mentions and entity names, which come again. A call with more new texts than ``capacity`` (a
    corpus) passes through without emptying the memory. Safe to use from several threads.

    Args:
        embedder: The embedder that does the work; its identity and dim are this one's.
        capacity: Vectors remembered (16,384 of 384 dimensions take 25 MB).
    """

    def __init__(self, embedder: Embedder, *, capacity: int = 16_384) -> None:
        self._embedder = embedder
        self._capacity = capacity
        self._memory: OrderedDict[tuple[Role, str], NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self.identity: Mapping[str, Any] = embedder.identity
        self.dim: int = embedder.dim
        self.stats = EmbeddingStats()

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return an (n, dim) float32 array of unit vectors, in order; the array is the caller's own."""
        if not texts:
            return no_rows(self.dim)
        known = self._recall(texts, role)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, self._work(new, role), strict=True))
        with self._lock:
            self.stats.calls += 1
            self.stats.asked += len(texts)
            self._remember(new, known, role)
        return np.stack([known[text] for text in texts])

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the embedder's window."""
        return self._embedder.long_texts(texts)

    def _recall(self, texts: Sequence[str], role: Role) -> dict[str, NDArray[np.float32]]:
        found = {}
        with self._lock:
            for text in dict.fromkeys(texts):
                if (row := self._memory.get((role, text))) is not None:
                    self._memory.move_to_end((role, text))
                    found[text] = row
        return found

    def _work(self, texts: list[str], role: Role) -> NDArray[np.float32]:
        wall, cpu = time.perf_counter(), time.process_time()
        rows = self._embedder.embed(texts, role)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        tokens = sum(map(estimate_tokens, texts))
        with self._lock:
            self.stats.embedded += len(texts)
            self.stats.tokens += tokens
            self.stats.wall_seconds += wall
            self.stats.cpu_seconds += cpu
        return rows

    def _remember(self, new: list[str], known: Mapping[str, NDArray[np.float32]], role: Role) -> None:
        if len(new) > self._capacity:
            return
        for text in new:
            self._memory[role, text] = known[text].copy()  # a view would keep the whole batch alive
        while len(self._memory) > self._capacity:
            self._memory.popitem(last=False)
