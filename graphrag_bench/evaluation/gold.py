"""The rules every answer metric shares: aliases, failures, refusals, and which questions are yes/no."""

from collections.abc import Callable

from graphrag_bench.evaluation.normalise import comparable, normalise
from graphrag_bench.evaluation.records import Record
from graphrag_bench.evaluation.refusal import is_refusal, opens_with_refusal


def aliases(record: Record) -> tuple[str, ...]:
    """Return the gold answers that are not blank."""
    return tuple(answer for answer in record.answers if answer.strip())


def unanswerable(record: Record) -> bool:
    """Say whether a gold answer states that there is none ("unanswerable", "Insufficient information.")."""
    return any(is_refusal(answer) for answer in record.answers)


def refused(record: Record) -> bool:
    """Say whether the record declines to answer, by its status or by the whole of its words."""
    return record.status == "refused" or (record.prediction is not None and is_refusal(record.prediction))


def is_yesno(record: Record) -> bool:
    """Say whether every gold answer is "yes" or "no" after normalisation."""
    golds = aliases(record)
    return bool(golds) and all(normalise(gold) in ("yes", "no") for gold in golds)


def best_alias(record: Record, compare: Callable[[str, str], float]) -> float | None:
    """Return the best ``compare(prediction, gold)`` over the aliases, both normalised; None without a gold answer.

    A failed question is 0 (it was asked; tables flag it). A refusal is 1 where the gold answer says there is none and 0
    elsewhere; a reply that explains itself after a refusing first sentence counts as one only where refusing is right.
    """
    golds = aliases(record)
    if not golds:
        return None
    if record.status == "failed":
        return 0.0
    if refused(record):
        return float(unanswerable(record))
    prediction = record.prediction or ""
    if unanswerable(record) and opens_with_refusal(prediction):
        return 1.0
    return max(compare(*comparable(prediction, gold)) for gold in golds)
