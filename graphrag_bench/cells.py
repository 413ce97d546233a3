"""The cells of a run: composed, checked together, named, and given their folders."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_bench.config.compose import Composed, compose, group_settings
from graphrag_bench.config.overrides import Cell as Overrides
from graphrag_bench.config.overrides import expand
from graphrag_bench.config.schema import PLAIN_GROUPS, RUN, SELECTORS, STAGES
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.pipeline.loans import GRAPH_LOANS
from graphrag_bench.pipeline.plan import Plan, Planner
from graphrag_bench.registry import REGISTRY
from graphrag_bench.store.artifacts import digest
from graphrag_bench.store.faults import user_path

_LONGEST = 120  # letters of a folder's name


@dataclass(frozen=True)
class Cell:
    """One checked cell: its configuration and plan, and what names it in folders and tables."""

    config: dict[str, Any]
    plan: Plan
    method: str
    axes: dict[str, Any]
    overrides: tuple[str, ...]
    unused: tuple[str, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)

    def folder(self, dataset: str) -> Path:
        """Return OUTPUT/<method>/<dataset>[/<swept settings>]."""
        path = user_path(self.config["output"]) / _safe(self.method) / _safe(dataset)
        rest = ",".join(f"{key}={value}" for key, value in self.axes.items())
        return path / _safe(rest) if rest else path

    def keyed(self) -> dict[str, Any]:
        """Return the part of the configuration that can change an answer or a score."""
        config = {key: value for key, value in self.config.items() if key not in RUN or not RUN[key].inert}
        for group, fields in PLAIN_GROUPS.items():
            config[group] = {key: value for key, value in config[group].items() if not fields[key].inert}
        for group in SELECTORS:
            settings, _ = group_settings(group, config[group])
            config[group] = {key: value for key, value in config[group].items() if not settings[key].inert}
        return config


def cells(overrides: Sequence[str], multirun: bool = False) -> tuple[list[Cell], list[str]]:
    """Compose and check every cell of a run; return them with notices for the reader.

    Raises:
        Faults: all that is wrong in any cell, each once; nothing has been run.
    """
    expanded, swept = expand(overrides, multirun)
    composed: list[tuple[Overrides, Composed]] = []
    faults: dict[str, UserError] = {}
    for overriding in expanded:
        try:
            composed.append((overriding, compose(overriding)))
        except UserError as error:
            faults.setdefault(str(error), error)
    used = {item.text for overriding, result in composed for item in overriding if item.text not in result.unused}
    idle: dict[str, dict[str, None]] = {}
    built: list[Cell] = []
    for overriding, result in composed:
        method = result.choices["method"]
        for text, fault in result.unused.items():
            if text in used:
                idle.setdefault(text, {})[method] = None
            elif not any(item.text == text for item in overriding if item.key == "method"):
                faults.setdefault(str(fault), fault)
        axes = {
            item.key: item.value
            for item in overriding
            if item.key in swept and item.key not in ("method", "dataset") and item.text not in result.unused
        }
        cell, found = _check(overriding, result, method, axes)
        for fault in found:
            faults.setdefault(str(fault), fault)
        if cell is not None:
            built.append(cell)
            if _drop_unread_graph(cell):
                idle.setdefault(f"graph={cell.choices['graph']}", {})[method] = None
    if faults:
        count = len(faults)
        raise Faults(f"{count} fault{'s' * (count > 1)}; nothing was run and no model was called.", faults.values())
    methods_run = {cell.method for cell in built}
    notices = [
        f"{text} has no effect on {', '.join(methods)}" + "; it applies to the other cells" * (methods.keys() < methods_run)
        for text, methods in idle.items()
    ]
    return _distinct(built), notices


def _check(
    overriding: Overrides, result: Composed, method: str, axes: dict[str, Any]
) -> tuple[Cell | None, list[UserError]]:
    config = result.config
    name = config["graph"].get("builder")
    try:
        builder = REGISTRY.get("builder", name) if name else None
    except UserError:
        return None, result.faults  # the composer has said it
    planner = Planner(config["method"], builder, result.sources.locate)
    plan = planner.plan()
    faults = [*result.faults, *planner.faults, *_metric_faults(config, result)]
    if builder is not None and not config["graph"].get("extractor"):
        faults.append(
            UserError(
                f"{result.sources.locate('graph', 'extractor')}: the graph {builder.name} needs an extractor.",
                "Write graph.extractor=llm or graph.extractor=openie.",
            )
        )
    if plan is None or faults:
        return None, faults
    texts = tuple(item.text for item in overriding)
    return Cell(config, plan, method, axes, texts, tuple(result.unused), result.choices), []


def _drop_unread_graph(cell: Cell) -> bool:
    """Build no graph for a method that reads none: its tokens would stand in that method's row of the table."""
    unread = bool(cell.config["graph"].get("builder")) and not cell.plan.loans & GRAPH_LOANS
    if unread and cell.config["until"] != "graph":
        cell.config["graph"] = {"builder": None}
        return True
    return False


def _metric_faults(config: dict[str, Any], result: Composed) -> list[UserError]:
    from graphrag_bench.evaluation.catalogue import expand as spell
    from graphrag_bench.evaluation.catalogue import metric

    values = config["evaluation"]
    faults = []
    for name in values.get("metrics") or []:
        try:
            for spelled in spell([name], values.get("ks") or [5]):
                metric(spelled)
        except UserError as error:
            faults.append(UserError(f"{result.sources.locate('evaluation', 'metrics')}: {error.problem}", error.fix))
    return faults


def _distinct(found: Sequence[Cell]) -> list[Cell]:
    """Drop cells that an override without effect made twice (a sweep over a graph setting has one BM25 cell)."""
    seen: dict[str, Cell] = {}
    for cell in found:
        seen.setdefault(repr((cell.method, cell.choices["dataset"], cell.config["dataset"], cell.axes)), cell)
    return list(seen.values())


def _safe(name: str) -> str:
    """Return a folder's name; what had to be left out of it is replaced by a hash, so that two names stay two folders."""
    safe = "".join(char if char.isalnum() or char in "-_.,=+" else "_" for char in name)
    if len(safe) > _LONGEST or not safe.strip("."):
        return f"{safe.strip('.')[: _LONGEST - 9]}_{digest(name)[:8]}"
    return safe


def reaches(config: dict[str, Any], stage: str) -> bool:
    """Say whether a run goes as far as ``stage``."""
    return STAGES.index(config["until"]) >= STAGES.index(stage)
