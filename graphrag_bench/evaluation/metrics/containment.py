"""Accuracy: is a gold answer contained in the prediction?"""

from graphrag_bench.evaluation.gold import best_alias, is_yesno
from graphrag_bench.evaluation.normalise import tokens
from graphrag_bench.evaluation.records import Record
from graphrag_bench.registry import register


def contains(prediction: str, gold: str) -> float:
    """Return 1 where ``gold`` is a substring of ``prediction``: "no" is found in "not" and in "know"."""
    return float(gold in prediction)


def contains_tokens(prediction: str, gold: str) -> float:
    """Return 1 where the tokens of ``gold`` stand side by side in ``prediction``: "no" is not found in "not"."""
    found, wanted = tokens(prediction), tokens(gold)
    return float(any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1)))


@register("metric", "accuracy", label="Accuracy", direction="higher", needs=("answers",),
          description="Any gold alias is a substring of the answer; a failed question is 0.")
def accuracy(record: Record) -> float | None:
    """Score 1 where any alias is contained in the prediction after normalisation.

    Source: the unified paper's and ArchRAG's accuracy (METHODS §3.2), any alias.
    """
    return best_alias(record, contains)


@register("metric", "accuracy_token", label="Accuracy (tokens)", direction="higher", needs=("answers",),
          description="As accuracy, but the alias must be found as whole tokens.")
def accuracy_token(record: Record) -> float | None:
    """Score 1 where any alias is contained as a run of whole tokens.

    Source: this project; it closes the trap of METHODS §3.2 that "no" is a substring of "not".
    """
    return best_alias(record, contains_tokens)


@register("metric", "accuracy_answered", label="Accuracy (answered)", direction="higher", needs=("answers",),
          description="Accuracy over the questions that did not fail.")
def accuracy_answered(record: Record) -> float | None:
    """Score as accuracy, leaving failed questions out.

    Source: DESIGN §7; printed beside accuracy, so that a weak method and a broken run can be told apart.
    """
    return None if record.status == "failed" else accuracy(record)


@register("metric", "accuracy.yesno", label="Accuracy (yes/no)", direction="higher", needs=("answers",),
          description="Accuracy over the questions whose gold answer is yes or no.")
def accuracy_yesno(record: Record) -> float | None:
    """Score accuracy on yes/no questions only.

    Source: METHODS §3.2: long answers nearly always contain a "no".
    """
    return accuracy(record) if is_yesno(record) else None


@register("metric", "accuracy.other", label="Accuracy (not yes/no)", direction="higher", needs=("answers",),
          description="Accuracy over the questions whose gold answer is not yes or no.")
def accuracy_other(record: Record) -> float | None:
    """Score accuracy on all but the yes/no questions.

    Source: METHODS §3.2, the counterpart of ``accuracy.yesno``.
    """
    return None if is_yesno(record) else accuracy(record)
