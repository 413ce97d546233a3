"""Text recall: did the gold text really reach the prompt, after cutting to the token budget?"""

from graphrag_bench.evaluation.records import Record
from graphrag_bench.registry import register


@register("metric", "text_recall", label="Text recall", direction="higher", needs=("passages",),
          description="Share of the gold passages whose whole text stands in the context.")
def text_recall(record: Record) -> float | None:
    """Score the share of gold passages contained word for word (but for white space) in the context.

    Only where the record carries both the context and the gold texts. A passage cut short by the token budget, or whose
    two halves stand in two chunks, does not count.

    Source: DESIGN §7, beside recall@k.
    """
    if record.context_text is None or not record.gold_texts:
        return None
    context = " ".join(record.context_text.split())
    found = [" ".join(text.split()) in context for text in record.gold_texts]
    return sum(found) / len(found)
