"""One finished cell of an experiment: a method on a dataset, with its scores and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.registry import nearest

INDEX_STAGES = frozenset({
    "index", "chunks", "extraction", "graph", "communities", "reports", "embedding", "lexical index",
    "vectors", "node vectors", "relationship vectors", "chunk vectors", "community vectors",
})
QUERY_STAGES = frozenset({"query", "question", "retrieve", "retrieval", "context", "answer"})
SCORING_STAGES = frozenset({"score", "judge", "evaluation"})  # paid by whoever measures, part of neither sum


@dataclass(frozen=True)
class CellResult:
    """What one cell gave.

    Attributes:
        method: Its name.
        dataset: Its name.
        axes: The other values that set this cell apart (llm, seed, an override).
        metrics: Name → ``{"value", "n", "ci"}``, as ``Scores.to_json()["metrics"]`` has them.
        tokens: Stage → prompt and completion tokens. A stage is one of the names above, or any name behind ``index.``
            or ``query.`` (``index.gleaning``). Empty = not measured.
        seconds: Stage → seconds, stages as for tokens.
        asked: Questions asked.
        answered: Questions that did not fail.
        failed: Kind of failure → how many.
        status: "done", or what became of it.
        notes: What the reader of a table should know, printed below it.
    """

    method: str
    dataset: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    asked: int = 0
    answered: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    status: str = "done"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for stage in (*self.tokens, *self.seconds):
            if _side(stage) is None:
                raise UserError(
                    f"{self.method} on {self.dataset}: is the stage {stage!r} paid once or for every question?",
                    nearest(stage, INDEX_STAGES | QUERY_STAGES | SCORING_STAGES)
                    + " Any other name needs index. or query. in front.",
                )

    def total(self, amounts: Mapping[str, float], side: str) -> float | None:
        """Sum ``tokens`` or ``seconds`` over the "index" or "query" stages; None where nothing was measured."""
        if not amounts:
            return None
        return sum(amount for stage, amount in amounts.items() if _side(stage) == side)


def _side(stage: str) -> str | None:
    head = stage.partition(".")[0]
    for side, stages in (("index", INDEX_STAGES), ("query", QUERY_STAGES), ("scoring", SCORING_STAGES)):
        if head in stages:
            return side
    return None
