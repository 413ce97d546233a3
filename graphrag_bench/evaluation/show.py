"""What ``graphrag-bench score FILE`` prints."""

import json
from collections.abc import Sequence
from pathlib import Path

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import DEFAULT_KS, metric
from graphrag_bench.evaluation.score import Scores, score_file
from graphrag_bench.report.layout import lay_out

_FAILED = (
    "\n† A failed question is 0 in the answer metrics (accuracy_answered leaves it out), and in the retrieval metrics "
    "where it came to no ranking."
)


def run_score(
    file: Path,
    metrics: str | None = None,
    as_json: bool = False,
    *,
    seed: int = 0,
    resamples: int = 2000,
    ks: Sequence[int] = DEFAULT_KS,
    level: float = 0.95,
) -> str:
    """Score a file of JSON lines and return the text to print.

    Args:
        file: The records (see ``read_records``).
        metrics: Names separated by commas; None = the default ones.
        as_json: Return ``Scores.to_json()`` as JSON instead of a table.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.
        ks: What ``@k`` stands for.
        level: Coverage of the intervals.

    Raises:
        UserError: The file or a metric's name is wrong.
    """
    if seed < 0:
        raise UserError(f"The seed {seed} is negative.", "Give a whole number from 0.")
    names = None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
    scores = score_file(file, names or None, seed=seed, resamples=resamples, ks=ks, level=level)
    if as_json:
        return json.dumps(scores.to_json(), ensure_ascii=False, indent=2)
    return scores_text(scores, level=level)


def scores_text(scores: Scores, *, level: float = 0.95) -> str:
    """Return the scores as a plain table in percent, with a line about the questions asked above it."""
    rows = []
    for name, one in scores.metrics.items():
        value = "–" if one.value is None else f"{100 * one.value:.1f}"
        ci = "–" if one.ci is None else f"[{100 * one.ci[0]:.1f}, {100 * one.ci[1]:.1f}]"
        rows.append((name, metric(name).label, value, ci, str(one.n)))
    kinds = "; ".join(f"{count} {kind}" for kind, count in scores.failed.items())
    failed = f", {sum(scores.failed.values())} failed † ({kinds})" if kinds else ""
    head = f"{scores.asked} asked, {scores.answered} answered{failed}, {scores.refused} refused"
    header = ("Metric", "", "%", f"{100 * level:g} % interval", "n")
    note = _FAILED if kinds else ""
    return f"{head}\n\n{lay_out(header, rows, {2, 3, 4})}{note}"
