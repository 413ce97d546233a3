"""Scores of a run: the mean of every metric over its records, with n and a bootstrap interval."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphrag_bench.evaluation.bootstrap import interval
from graphrag_bench.evaluation.catalogue import DEFAULT_KS, DEFAULT_METRICS, expand, metric
from graphrag_bench.evaluation.gold import refused
from graphrag_bench.evaluation.records import Record, read_records

_DIGITS = 6


@dataclass(frozen=True)
class Score:
    """The mean of one metric over the ``n`` records it scores; value and interval are None where n = 0."""

    value: float | None
    n: int
    ci: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Return ``{"value", "n", "ci"}``, fractions rounded to six decimals."""
        return {
            "value": None if self.value is None else round(self.value, _DIGITS),
            "n": self.n,
            "ci": None if self.ci is None else [round(bound, _DIGITS) for bound in self.ci],
        }


@dataclass(frozen=True)
class Scores:
    """All scores of a run. asked = answered + failed; a refusal is an answer, counted in ``refused`` besides."""

    metrics: Mapping[str, Score]
    asked: int
    answered: int
    failed: Mapping[str, int]  # kind of failure → how many
    refused: int
    per_question: list[dict[str, Any]]  # {"id", metric: value or None}, in the order asked

    def to_json(self) -> dict[str, Any]:
        """Return what ``metrics.json`` holds, without the values by question."""
        return {
            "metrics": {name: score.to_json() for name, score in self.metrics.items()},
            "asked": self.asked,
            "answered": self.answered,
            "failed": dict(self.failed),
            "refused": self.refused,
        }


def score(
    records: Sequence[Record],
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    resamples: int = 2000,
    ks: Sequence[int] = DEFAULT_KS,
    level: float = 0.95,
) -> Scores:
    """Score records.

    A question that failed before anything was retrieved has retrieved nothing, as long as the method retrieves passages
    at all (some record has a ranking): dropping it would reward failing on hard questions.

    Args:
        records: One a question.
        metrics: Names in the order wanted, ``recall@7`` for any k, ``recall@k`` for each of ``ks``; None = the default.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.
        ks: What ``@k`` stands for.
        level: Coverage of the intervals.

    Raises:
        UserError: A metric is unknown.
    """
    chosen = [metric(name) for name in expand(DEFAULT_METRICS if metrics is None else metrics, ks)]
    settled = _settle(records)
    table = {one.name: [one.value(record) for record in settled] for one in chosen}
    scores: dict[str, Score] = {}
    for name, column in table.items():
        values = [value for value in column if value is not None]
        mean = sum(values) / len(values) if values else None
        scores[name] = Score(mean, len(values), interval(values, seed=seed, resamples=resamples, level=level))
    failures = [record for record in records if record.status == "failed"]
    kinds = Counter(record.reason.partition(":")[0].strip() or "no reason given" for record in failures)
    return Scores(
        metrics=scores,
        asked=len(records),
        answered=len(records) - len(failures),
        failed=dict(sorted(kinds.items())),
        refused=sum(refused(record) for record in records),
        per_question=[
            {"id": record.id} | {name: _rounded(column[row]) for name, column in table.items()}
            for row, record in enumerate(records)
        ],
    )


def score_file(
    path: Path,
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    resamples: int = 2000,
    ks: Sequence[int] = DEFAULT_KS,
    level: float = 0.95,
) -> Scores:
    """Score a file of JSON lines, this project's or any other (see ``read_records``); arguments as for ``score``."""
    return score(read_records(path), metrics, seed=seed, resamples=resamples, ks=ks, level=level)


def _settle(records: Sequence[Record]) -> list[Record]:
    if all(record.retrieved is None for record in records):
        return list(records)
    return [
        replace(record, retrieved=()) if record.status == "failed" and record.retrieved is None else record
        for record in records
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
