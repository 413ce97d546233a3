"""Which methods run on which graphs: every method's page planned and probed on every kind of graph that has what it reads."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_bench.cells import brings_communities, ground
from graphrag_bench.config import sources
from graphrag_bench.config.compose import Composed, compose
from graphrag_bench.config.overrides import Override, expand
from graphrag_bench.config.schema import filled
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.plan import Planner
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.preflight import prober
from graphrag_bench.registry import REGISTRY
from graphrag_bench.report.layout import lay_out

Group = Mapping[str, Any]


@dataclass(frozen=True)
class Support:
    """How one method stands to one graph.

    Attributes:
        method: the method's page.
        graph: the graph's page.
        word: it runs; it lacks something; or it reads no graph, so that none would be built.
        required: whether the method's page requires this graph.
        missing: the first thing it reads that the graph has not.
    """

    method: str
    graph: str
    word: Literal["yes", "no", "unread"]
    required: bool = False
    missing: str = ""

    def shown(self) -> str:
        """Return the matrix's cell."""
        if self.word == "no":
            return f"– {self.missing}"
        return ("yes" if self.word == "yes" else "·") + "*" * self.required


def check_all(overrides: Sequence[str], *, multirun: bool = False) -> str:
    """Check every method's page on every kind of graph; return the matrix.

    Args:
        overrides: further ``key=value`` settings for all of them; ``method=X`` or ``graph=X`` narrows to one page, and
            ``graph.path=…`` brings in the pages of imported graphs that can read it.
        multirun: refused, since everything is checked already.

    Raises:
        UserError: a page fails on the graph it requires, or on one that has all it reads; all that do are said.
    """
    found = supports(overrides, multirun=multirun)
    methods = list(dict.fromkeys(item.method for item in found))
    graphs = list(dict.fromkeys(item.graph for item in found))
    cells = {(item.method, item.graph): item.shown() for item in found}
    table = lay_out(("method", *graphs), [[name, *(cells[name, graph] for graph in graphs)] for name in methods], ())
    count = sum(item.word == "yes" for item in found)
    unread = any(item.word == "unread" for item in found)
    return "\n".join(
        [
            table,
            "",
            "yes: planned and probed;  *: the graph its page requires;  –: what it reads first that the graph has not"
            + (";  ·: it reads no graph" if unread else ""),
            f"{_count(methods, 'method')}, {_count(graphs, 'graph')}, {count} pair{'s' * (count != 1)} probed; "
            "nothing was spent, and no dataset was read.",
        ]
    )


def _count(found: Sequence[str], what: str) -> str:
    return f"{len(found)} {what}{'s' * (len(found) != 1)}"


def supports(overrides: Sequence[str] = (), *, multirun: bool = False) -> list[Support]:
    """Return how every method's page stands to every graph's page, methods first; see `check_all`."""
    base, narrowed = _base(overrides, multirun)
    faults: dict[str, UserError] = {}
    graphs, used = _graphs(base, narrowed.get("graph"), faults)
    found: list[Support] = []
    with prober() as probe, asyncio.Runner() as runner:
        tried: dict[tuple[str, frozenset[str]], UserError | None] = {}

        def breaks(plan: Plan, carried: frozenset[str]) -> UserError | None:
            key = (repr(plan), carried)
            if key not in tried:
                try:
                    runner.run(probe(plan, carried))
                    tried[key] = None
                except UserError as error:
                    tried[key] = error
            return tried[key]

        for method in _chosen("method", narrowed.get("method")):
            try:
                composed = compose((*base, _choice("method", method)))
            except UserError as error:
                faults.setdefault(str(error), error)
                continue
            used |= {item.text for item in base} - composed.unused.keys()
            found += _row(method, composed, graphs, breaks, faults)
    for item in base:
        if item.text not in used:
            faults.setdefault(
                item.text, UserError(f"{item.place}: no method and no graph has a use for it.", "Leave it out.")
            )
    if faults:
        count = len(faults)
        raise Faults(f"{count} fault{'s' * (count > 1)}; no model was called.", faults.values())
    return found


def _base(overrides: Sequence[str], multirun: bool) -> tuple[tuple[Override, ...], dict[str, Override]]:
    expanded, _ = expand(overrides, multirun)
    if multirun or len(expanded) != 1:
        raise UserError(
            "check --all takes no sweep: it checks every method on every graph.", "Leave out -m and experiment=…."
        )
    chosen = {item.key: item for item in expanded[0] if item.key in ("method", "graph")}
    return tuple(item for item in expanded[0] if item.key not in chosen), chosen


def _choice(group: str, name: str) -> Override:
    return Override(group, name, f"{group}={name}")


def _chosen(group: str, narrowed: Override | None) -> list[str]:
    if narrowed is None:
        return list(sources.pages(group))
    sources.page(group, str(narrowed.value), narrowed.place)  # raises, with the nearest name
    return [str(narrowed.value)]


def _graphs(
    base: tuple[Override, ...], narrowed: Override | None, faults: dict[str, UserError]
) -> tuple[dict[str, Group], set[str]]:
    """Compose every graph's page once; return them by name, no graph last, and the overrides they have a use for.

    An imported graph is left out unless there is a path to read: what it carries is known from its files alone.
    """
    given = {item.key for item in base}
    found: dict[str, Group] = {}
    used: set[str] = set()
    refused: dict[str, UserError] = {}  # of the importers, some are for other files than those given
    importing: set[str] = set()
    for name in sorted(_chosen("graph", narrowed), key=lambda name: name == "none"):
        page = sources.read_page(sources.page("graph", name))
        asked = {f"graph.{key}" for key, value in page.items() if value == "???"}  # what Hydra wants to be told
        if narrowed is None and not asked <= given:
            continue
        try:
            composed = compose((*base, _choice("graph", name)))
            _look(composed.config)
        except UserError as error:
            (faults if narrowed is not None or not asked else refused).setdefault(str(error), error)
            importing |= asked
            continue
        used |= {item.text for item in base} - composed.unused.keys()
        for fault in composed.faults:
            faults.setdefault(str(fault), fault)
        found[name] = composed.config["graph"]
    paths = {item.text for item in base if item.key in importing}
    if not paths & used:  # none of them can read what was given
        faults.update(refused)
        used |= paths
    return found, used


def _look(config: Mapping[str, Any]) -> None:
    """Raise where a graph that is read from files cannot be."""
    if name := config["graph"].get("builder"):
        builder = REGISTRY.get("builder", str(name))
        if inputs := builder.extra.get("inputs"):
            inputs(filled(config["graph"], builder.settings))
    ground(config)


def _row(
    method: str,
    composed: Composed,
    graphs: Mapping[str, Group],
    breaks: Callable[[Plan, frozenset[str]], UserError | None],
    faults: dict[str, UserError],
) -> list[Support]:
    """Plan and probe one method on every graph; what is wrong on the graph it requires, or in the probe, joins the faults."""
    required = composed.choices["graph"]
    for fault in composed.faults:
        faults.setdefault(str(fault), fault)
    own, problems = _planned(composed, graphs.get(required, composed.config["graph"]))
    for fault in problems:
        faults.setdefault(str(fault), fault)
    if own is None:
        return []
    row: list[Support] = []
    for name, graph in graphs.items():
        standing = _standing(composed, graph)
        plan, problems = _planned(composed, graph)
        if plan is None:
            if not (missing := _missing(own, standing)):  # it has all that is read: the graph is not the reason
                faults.update({str(fault): fault for fault in problems})
            row.append(Support(method, name, "no", name == required, missing))
            continue
        if broken := breaks(plan, standing.attributes):
            told = UserError(f"{method} on the graph {name}: {broken.problem}", broken.fix)
            faults.setdefault(str(told), told)
        read = plan.reads_graph
        row.append(Support(method, name, "yes" if read or not standing.graph else "unread", name == required))
    return row


def _with(composed: Composed, graph: Group) -> dict[str, Any]:
    """Return a method's configuration on another graph; one that brings communities needs none found."""
    config = {**composed.config, "graph": graph}
    return config | {"community": {"clusterer": None}} if brings_communities(config) else config


def _standing(composed: Composed, graph: Group) -> Ground:
    return ground(_with(composed, graph))


def _planned(composed: Composed, graph: Group) -> tuple[Plan | None, list[UserError]]:
    planner = Planner(composed.config["method"], _standing(composed, graph), composed.sources.locate)
    return planner.plan(), planner.faults


def _missing(plan: Plan, standing: Ground) -> str:
    """Return the first thing a plan reads that the graph has not, or an empty text."""
    if standing.graph is None:
        return "graph" if plan.reads_graph else ""
    wanted: Iterable[str] = (need for component in plan.components for need in component.needs)
    return next((need for need in wanted if standing.attributes.isdisjoint(need.split("|"))), "").partition("|")[0]
