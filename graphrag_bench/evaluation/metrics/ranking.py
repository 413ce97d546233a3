"""Retrieval metrics over ranked passage ids. The first k ids are read as they stand: a repeated id takes its place."""

from graphrag_bench.evaluation.records import Record
from graphrag_bench.registry import register


def _gold_in(record: Record, k: int) -> tuple[int, int] | None:
    """Return (gold passages among the first k, gold passages), or None where there is nothing to compare."""
    gold = set(record.gold_passages)
    if record.retrieved is None or not gold:
        return None
    return len(gold.intersection(record.retrieved[:k])), len(gold)


@register("metric", "recall@k", label="Recall@k", direction="higher", needs=("passages",),
          description="Share of the gold passages among the first k retrieved.")
def recall_at_k(record: Record, *, k: int) -> float | None:
    """Score |gold ∩ first k| / |gold|.

    Source: HippoRAG's Recall@k (Gutiérrez et al., 2024; METHODS §3.11), by passage id.
    """
    found = _gold_in(record, k)
    return None if found is None else found[0] / found[1]


@register("metric", "hit@k", label="Hit@k", direction="higher", needs=("passages",),
          description="At least one gold passage is among the first k retrieved.")
def hit_at_k(record: Record, *, k: int) -> float | None:
    """Score 1 where any gold passage is among the first k.

    Source: success@k of the TREC evaluations.
    """
    found = _gold_in(record, k)
    return None if found is None else float(found[0] > 0)


@register("metric", "all_gold@k", label="All gold@k", direction="higher", needs=("passages",),
          description="Every gold passage is among the first k retrieved.")
def all_gold_at_k(record: Record, *, k: int) -> float | None:
    """Score 1 where all gold passages are among the first k; 0 by necessity where there are more than k.

    Source: fast-graphrag's "perfect retrieval" (METHODS §3.11), which reads at most 8.
    """
    found = _gold_in(record, k)
    return None if found is None else float(found[0] == found[1])


@register("metric", "mrr", label="MRR", direction="higher", needs=("passages",),
          description="One over the rank of the first gold passage; 0 where none was retrieved.")
def mrr(record: Record) -> float | None:
    """Score the reciprocal rank of the first gold passage over the whole ranking.

    Source: Voorhees, TREC-8 question answering track (1999).
    """
    return None if record.retrieved is None else mrr_at_k(record, k=len(record.retrieved))


@register("metric", "mrr@k", label="MRR@k", direction="higher", needs=("passages",),
          description="As mrr, over the first k retrieved.")
def mrr_at_k(record: Record, *, k: int) -> float | None:
    """Score the reciprocal rank of the first gold passage among the first k.

    Source: as ``mrr``.
    """
    if record.retrieved is None or not record.gold_passages:
        return None
    gold = set(record.gold_passages)
    return next((1 / rank for rank, passage in enumerate(record.retrieved[:k], start=1) if passage in gold), 0.0)
