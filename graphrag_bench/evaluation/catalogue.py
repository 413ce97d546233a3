"""Metrics by name: ``recall@7`` is the registered ``recall@k`` with k = 7, ``community/chi`` one of community quality."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.records import Record
from graphrag_bench.registry import REGISTRY, Component, nearest

# What conf/evaluation/default.yaml says, for callers without a configuration; a test keeps the two equal.
DEFAULT_METRICS = (
    "accuracy", "accuracy_token", "accuracy_answered", "accuracy.yesno", "accuracy.other",
    "em", "f1", "precision", "recall", "recall_plain", "recall.yesno", "recall.other",
    "recall@k", "hit@k", "all_gold@k", "mrr", "text_recall",
)
DEFAULT_KS = (1, 2, 5, 10, 20)
PREFIX = "community/"  # of the name of a metric of community quality among those of a cell
_ALWAYS = ("count", "clustered")  # what no comparison of communities is fair without


@dataclass(frozen=True)
class Metric:
    """A metric ready to use: ``value`` maps a record to a number, or to None where it is not scored."""

    name: str
    label: str
    direction: str  # "higher" or "lower" is better
    needs: tuple[str, ...]
    description: str
    value: Callable[[Record], float | None]


def expand(names: Iterable[str], ks: Sequence[int] = DEFAULT_KS) -> list[str]:
    """Spell out ``…@k`` for each of ``ks`` and drop repetitions; the order is kept."""
    spelled = (f"{name[:-1]}{k}" for name in names for k in (ks if name.endswith("@k") else [name[-1:]]))
    return list(dict.fromkeys(spelled))


def metric(name: str) -> Metric:
    """Return the metric called ``name``.

    Raises:
        UserError: No such metric (the nearest name is given), or a k that is not a positive whole number.
    """
    family, at, k = name.partition("@")
    known = {component.name for component in REGISTRY.all("metric")}
    registered = f"{family}@k" if at else name
    if registered not in known:
        near = nearest(registered, known)
        fix = near.replace("@k", f"@{k}") if near.startswith("Did") and k.isdigit() else near
        raise UserError(f"No metric is called {name!r}.", fix)
    component = REGISTRY.get("metric", registered)
    if at and not re.fullmatch("[1-9][0-9]{0,8}", k):
        raise UserError(f"{name!r} does not say how many passages to read.", f"Write a number, as in {family}@5.")
    extra = component.extra
    return Metric(
        name=name,
        label=extra["label"].replace("@k", f"@{k}") if at else extra["label"],
        direction=extra["direction"],
        needs=component.needs,
        description=extra["description"].replace("first k", f"first {k}") if at else extra["description"],
        value=partial(_of_asked, component.needs, partial(component.call, k=int(k)) if at else component.call),
    )


def _of_asked(needs: tuple[str, ...], value: Callable[[Record], float | None], record: Record) -> float | None:
    """Leave what needs an answer unscored where none was asked for."""
    return None if record.status == "retrieved" and "answers" in needs else value(record)


def community_metric(name: str) -> Component:
    """Return a metric of community quality.

    Args:
        name: with or without ``community/`` in front.

    Raises:
        UserError: no such metric; the nearest name is given.
    """
    known = {component.name for component in REGISTRY.all("community_metric")}
    if (bare := name.removeprefix(PREFIX)) not in known:
        raise UserError(f"No metric of communities is called {bare!r}.", nearest(bare, known))
    return REGISTRY.get("community_metric", bare)


def chosen_metrics(names: Sequence[str]) -> list[Component]:
    """Return the metrics to compute: those that always are, and those named, each once; none where none is named."""
    return [community_metric(name) for name in dict.fromkeys((*_ALWAYS, *names))] if names else []
