"""The cells of a run: composed, checked together, named, and given their folders."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_bench.config.compose import Composed, Made, compose, group_settings
from graphrag_bench.config.overrides import COMMAND_LINE, Override, expand
from graphrag_bench.config.overrides import Cell as Overrides
from graphrag_bench.config.schema import GROUPS, RUN, STAGES, filled
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.graph.extraction import Extraction, RichExtraction
from graphrag_bench.pipeline.clustering import part_faults
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.plan import Planner
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.registry import REGISTRY, Component
from graphrag_bench.store.artifacts import digest
from graphrag_bench.store.faults import user_path

_LONGEST = 120  # letters of a folder's name
_SHOWN = 8  # methods named in one notice


@dataclass(frozen=True)
class Cell:
    """One checked cell: its configuration and plan, and what names it in folders and tables."""

    config: dict[str, Any]
    plan: Plan
    method: str
    axes: dict[str, Any]
    overrides: tuple[str, ...]
    ground: Ground = field(default_factory=Ground)
    unused: tuple[str, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)

    def folder(self, dataset: str) -> Path:
        """Return OUTPUT/<method>/<dataset>[/<swept settings>]."""
        path = user_path(self.config["output"]) / _safe(self.method) / _safe(dataset)
        rest = ",".join(f"{key}={value}" for key, value in self.axes.items())
        return path / _safe(rest) if rest else path

    @property
    def has_communities(self) -> bool:
        """Say whether the graph this cell builds has communities."""
        return bool(self.config["graph"].get("builder")) and "community" in self.ground.attributes

    def keyed(self) -> dict[str, Any]:
        """Return the part of the configuration that can change an answer or a score."""
        config = {key: value for key, value in self.config.items() if key not in RUN or not RUN[key].inert}
        for group in GROUPS[1:]:
            settings, _ = group_settings(group, config[group])
            # a group without a component (no graph, no communities) has nothing that counts
            config[group] = {key: v for key, v in config[group].items() if key in settings and not settings[key].inert}
        return config


def cells(overrides: Sequence[str], multirun: bool = False) -> tuple[list[Cell], list[str]]:
    """Compose and check every cell of a run; return them with notices for the reader.

    Raises:
        Faults: all that is wrong in any cell, each once; nothing has been run.
    """
    expanded, swept = expand(overrides, multirun)
    composed: list[tuple[Overrides, Composed]] = []
    made: Made = {}
    faults: dict[str, UserError] = {}
    for overriding in expanded:
        try:
            composed.append((overriding, compose(overriding, made)))
        except UserError as error:
            faults.setdefault(str(error), error)
    used = {item.text for overriding, result in composed for item in overriding if item.text not in result.unused}
    reading = {
        (item.text, result.choices["method"]): item.key in swept
        for overriding, result in composed
        for item in overriding
        if item.text not in result.unused
    }
    spared = _spared(item for overriding in expanded for item in overriding)
    idle: dict[str, dict[str, None]] = {}
    built: list[Cell] = []
    for overriding, result in composed:
        method = result.choices["method"]
        for text, fault in result.unused.items():
            if text in used or text in spared:
                # an axis that some cells of a method do not have is seen in the table
                if not reading.get((text, method)):
                    idle.setdefault(text, {})["some cells of " * ((text, method) in reading) + method] = None
            elif not any(item.text == text for item in overriding if item.key == "method"):
                faults.setdefault(str(fault), fault)
        axes = {
            item.key: item.value
            for item in overriding
            if item.key in swept and item.key not in ("method", "dataset") and item.text not in result.unused
        }
        cell, found = _check(overriding, result, method, axes)
        own = next((item for item in overriding if item.page is not None), None)
        for fault in found:  # what is wrong with many compositions alike is said of the first
            faults.setdefault(str(fault).replace(own.place, own.origin) if own else str(fault), fault)
        if cell is not None:
            built.append(cell)
            if _drop_unread_graph(cell):
                idle.setdefault(f"graph={cell.choices['graph']}", {})[method] = None
            if cell.config["evaluation"]["communities"] and not cell.has_communities:
                idle.setdefault("evaluation.communities", {})[method] = None
    if faults:
        count = len(faults)
        raise Faults(f"{count} fault{'s' * (count > 1)}; nothing was run and no model was called.", faults.values())
    methods_run = {cell.method for cell in built}
    notices = [note for note in dict.fromkeys(item.note for overriding in expanded for item in overriding) if note]
    notices += [
        f"{text} has no effect on {_listed(list(methods))}"
        + "; it applies to the other cells" * (methods.keys() < methods_run)
        for text, methods in idle.items()
    ]
    return _distinct(built), notices


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} others"


def _spared(items: Iterable[Override]) -> set[str]:
    """Return the settings of an experiment's page that need fit no cell: its methods were narrowed on the command line."""
    listed = list(items)
    narrowed = any(item.key == "method" and item.origin == COMMAND_LINE for item in listed)
    return {item.text for item in listed if narrowed and item.origin != COMMAND_LINE}


def _check(
    overriding: Overrides, result: Composed, method: str, axes: dict[str, Any]
) -> tuple[Cell | None, list[UserError]]:
    config = result.config
    try:
        if not any(item.key.split(".")[0] == "community" for item in overriding) and brings_communities(config):
            config["community"] = {"clusterer": None}  # what the page requires is there already
        standing = ground(config)
    except UserError as error:
        return None, result.faults or [error]  # a component that does not exist has been said by the composer
    planner = Planner(config["method"], standing, result.sources.locate)
    plan = planner.plan()
    faults = [*result.faults, *planner.faults, *_metric_faults(config, result), *_graph_faults(config, result)]
    if plan is None or faults:
        return None, faults
    texts = tuple(item.text for item in overriding)
    return Cell(config, plan, method, axes, texts, standing, tuple(result.unused), result.choices), []


def carried(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the attributes of the graph that a configuration builds, communities that are looked for apart."""
    name = config["graph"].get("builder")
    if not name:
        return frozenset()
    builder = REGISTRY.get("builder", name)
    look = builder.extra.get("attributes")  # an imported graph carries what its files hold
    found = look(filled(config["graph"], builder.settings)) if look else None
    return frozenset(builder.provides) if found is None else frozenset(builder.provides) & found


def brings_communities(config: Mapping[str, Any]) -> bool:
    """Say whether the graph comes with communities of its own, as an imported one may."""
    return "community" in carried(config)


def ground(config: Mapping[str, Any]) -> Ground:
    """Return what a method stands on: the graph a configuration builds, and all that it will carry."""
    name = config["graph"].get("builder")
    if not name:
        return Ground()
    attributes, community = carried(config), config["community"]
    if community.get("clusterer") and not _lacking(REGISTRY.get("clusterer", community["clusterer"]), attributes):
        # reports on communities that the graph may have brought are not on these
        attributes = (attributes - {"community.report"}) | {"community"}
        attributes |= {"community.report"} if community.get("reports") else set()
    return Ground(str(name), attributes)


def _lacking(component: Component, attributes: frozenset[str]) -> str:
    """Return what a component reads of the graph that is not among its attributes, or an empty text."""
    return next((need for need in component.needs if attributes.isdisjoint(need.split("|"))), "")


def _graph_faults(config: Mapping[str, Any], result: Composed) -> list[UserError]:
    name = config["graph"].get("builder")
    if not name:
        return []
    faults = []
    builder = REGISTRY.get("builder", name)
    extracts = any(port.annotation in (Extraction, RichExtraction) for port in builder.ports)
    if extracts and not config["graph"].get("extractor"):
        first = "described" if any(port.annotation is RichExtraction for port in builder.ports) else "llm"
        faults.append(
            UserError(
                f"{result.sources.locate('graph', 'extractor')}: the graph {builder.name} needs an extractor.",
                f"Write graph.extractor={first}, =openie or =noun_phrase.",
            )
        )
    clusterer = config["community"].get("clusterer")
    if clusterer:
        for key, problem, fix in part_faults(REGISTRY.get("clusterer", clusterer), config["community"]):
            faults.append(UserError(f"{result.sources.locate('community', key)}: {problem}.", fix))
    if clusterer and (lacking := _lacking(REGISTRY.get("clusterer", clusterer), carried(config))):
        faults.append(
            UserError(
                f"{result.sources.locate('community', 'clusterer')}: the clusterer {clusterer} reads {lacking}, "
                f"which the graph {builder.name} has not.",
                "Choose a graph of entities, such as graph=kg, or write community=none.",
            )
        )
    return faults


def _drop_unread_graph(cell: Cell) -> bool:
    """Build no graph for a method that reads none: its tokens would stand in that method's row of the table."""
    if not cell.config["graph"].get("builder"):
        return False
    if not cell.plan.reads_graph and cell.config["until"] != "graph":
        cell.config["graph"] = {"builder": None}
        cell.config["community"] = {"clusterer": None}
        return True
    return False


def _metric_faults(config: dict[str, Any], result: Composed) -> list[UserError]:
    from graphrag_bench.evaluation.catalogue import community_metric, metric
    from graphrag_bench.evaluation.catalogue import expand as spell

    values = config["evaluation"]
    faults = []
    for name in values.get("metrics") or []:
        try:
            for spelled in spell([name], values.get("ks") or [5]):
                metric(spelled)
        except UserError as error:
            faults.append(UserError(f"{result.sources.locate('evaluation', 'metrics')}: {error.problem}", error.fix))
    for name in values.get("communities") or []:
        try:
            community_metric(name)
        except UserError as error:
            where = result.sources.locate("evaluation", "communities")
            faults.append(UserError(f"{where}: {error.problem}", error.fix))
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
