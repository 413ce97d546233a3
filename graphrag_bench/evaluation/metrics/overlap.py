"""Exact match, and precision, recall and F1 over bags of tokens."""

from collections import Counter
from typing import NamedTuple

from graphrag_bench.evaluation.gold import best_alias, is_yesno
from graphrag_bench.evaluation.normalise import tokens
from graphrag_bench.evaluation.records import Record
from graphrag_bench.registry import register

_CLOSED = ("yes", "no", "noanswer")


class Overlap(NamedTuple):
    """How much two bags of tokens share."""

    precision: float
    recall: float
    f1: float


def overlap(prediction: str, gold: str, *, closed: bool = True) -> Overlap:
    """Compare two normalised texts as bags of tokens.

    With c the size of the multiset intersection: P = c / |prediction|, R = c / |gold|, and
    F1 = 2c / (|prediction| + |gold|).
    ``closed`` applies the yes/no rule: where either text *is* "yes", "no" or "noanswer" and the other is not the same,
    all three are 0.

    Source: the HotpotQA evaluation script (Yang et al., 2018), as in METHODS §3.3.
    """
    if closed and prediction != gold and (prediction in _CLOSED or gold in _CLOSED):
        return Overlap(0.0, 0.0, 0.0)
    found, wanted = tokens(prediction), tokens(gold)
    common = (Counter(found) & Counter(wanted)).total()
    if common == 0:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(common / len(found), common / len(wanted), 2 * common / (len(found) + len(wanted)))


@register("metric", "em", label="EM", direction="higher", needs=("answers",),
          description="The answer equals a gold alias after normalisation.")
def em(record: Record) -> float | None:
    """Score 1 where the prediction equals any alias after normalisation.

    Source: SQuAD exact match (Rajpurkar et al., 2016), maximum over the gold answers.
    """
    return best_alias(record, lambda prediction, gold: float(prediction == gold))


@register("metric", "f1", label="F1", direction="higher", needs=("answers",),
          description="Harmonic mean of token precision and recall, best alias, with the yes/no rule.")
def f1(record: Record) -> float | None:
    """Score the token F1 of the best alias.

    Source: HotpotQA's script (METHODS §3.3) with its yes/no rule, maximum over the gold answers.
    """
    return best_alias(record, lambda prediction, gold: overlap(prediction, gold).f1)


@register("metric", "precision", label="Precision", direction="higher", needs=("answers",),
          description="Share of the answer's tokens that are gold, best alias, with the yes/no rule.")
def precision(record: Record) -> float | None:
    """Score the token precision of the best alias.

    Source: as ``f1``.
    """
    return best_alias(record, lambda prediction, gold: overlap(prediction, gold).precision)


@register("metric", "recall", label="Recall", direction="higher", needs=("answers",),
          description="Share of the gold answer's tokens in the answer, best alias, with the yes/no rule.")
def recall(record: Record) -> float | None:
    """Score the token recall of the best alias.

    Source: as ``f1``. Under the rule a gold "yes" answered by "Yes, because …" is 0.
    """
    return best_alias(record, lambda prediction, gold: overlap(prediction, gold).recall)


@register("metric", "recall_plain", label="Recall (no yes/no rule)", direction="higher", needs=("answers",),
          description="As recall, without the yes/no rule.")
def recall_plain(record: Record) -> float | None:
    """Score the token recall of the best alias without the yes/no rule.

    Source: METHODS §3.3, as HippoRAG 2 does.
    """
    return best_alias(record, lambda prediction, gold: overlap(prediction, gold, closed=False).recall)


@register("metric", "recall.yesno", label="Recall (yes/no)", direction="higher", needs=("answers",),
          description="Recall over the questions whose gold answer is yes or no.")
def recall_yesno(record: Record) -> float | None:
    """Score recall on yes/no questions only.

    Source: DESIGN §7; with the rule this is exact match.
    """
    return recall(record) if is_yesno(record) else None


@register("metric", "recall.other", label="Recall (not yes/no)", direction="higher", needs=("answers",),
          description="Recall over the questions whose gold answer is not yes or no.")
def recall_other(record: Record) -> float | None:
    """Score recall on all but the yes/no questions.

    Source: DESIGN §7, the counterpart of ``recall.yesno``.
    """
    return None if is_yesno(record) else recall(record)
