"""Read a method's page into a plan, and check its wiring before anything is spent.

A step's wires are found by name, or left out when exactly one value of the type has been made so far; two are a fault,
never a guess. All faults are collected; each says where it stands, what was wanted, what was found and what to write.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_bench.config.schema import Locate, filled, settings_faults, type_name, value_fault
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.loans import GRAPH_LOANS, LOANS
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.pipeline.wires import WIRES
from graphrag_bench.registry import REGISTRY, Component, Port, Setting, nearest

FIELDS = {
    name: Setting(name, kind, default)
    for name, kind, default in (
        ("name", str, ...),
        ("source", str, ""),
        ("notes", str, ""),
        ("top_k", int | None, None),
        ("requires", dict[str, str] | None, None),
        ("question", dict[str, Any] | None, None),
        ("retrieve", dict[str, Any] | None, None),
        ("context", dict[str, Any] | None, None),
        ("answer", dict[str, Any] | None, None),
    )
}
_SECTION = {
    name: Setting(name, kind, default)
    for name, kind, default in (
        ("from", str | list[str], ...),
        ("top_k", int | None, None),
        ("tokens", int | None, None),
        ("join", Literal["unique"], "unique"),
    )
}
_JOIN = Setting("join", str, "max")


@dataclass(frozen=True)
class Step:
    """One operator of a method, wired: ``wires`` maps a port to the names of the values that feed it."""

    name: str
    component: Component
    wires: Mapping[str, tuple[str, ...]]
    join: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A part of the context: the values it shows, how many of their elements, in how many tokens."""

    name: str
    sources: tuple[str, ...]
    kind: type
    top_k: int | None
    tokens: int | None


@dataclass(frozen=True)
class Plan:
    """A checked method: what is asked of the questions, the steps in order, the context, the generator."""

    name: str
    converters: tuple[tuple[Component, Mapping[str, Any]], ...]
    steps: tuple[Step, ...]
    sections: tuple[Section, ...]
    generator: tuple[Component, Mapping[str, Any]] | None

    @property
    def components(self) -> tuple[Component, ...]:
        """Every component the method uses."""
        used = [component for component, _ in self.converters] + [step.component for step in self.steps]
        return (*used, self.generator[0]) if self.generator else tuple(used)

    @property
    def loans(self) -> set[type]:
        """What the retrieval part borrows: graph, indexes, model."""
        borrowing = [component for component, _ in self.converters] + [step.component for step in self.steps]
        return {port.annotation for component in borrowing for port in component.ports if port.annotation in LOANS}

    def line(self) -> str:
        """Return the resolved chain as one line a person can compare with the paper's row."""
        parts = [component.name for component, _ in self.converters]
        for step in self.steps:
            fed = " | ".join(name for names in step.wires.values() for name in names)
            parts.append(f"{step.component.name}({fed})" if fed else step.component.name)
        if self.sections:
            parts.append(f"context({', '.join(section.name for section in self.sections)})")
        if self.generator:
            parts.append(self.generator[0].name)
        return " > ".join(parts)


class Planner:
    """Checks one method page against the registry and the graph it will have."""

    def __init__(self, page: Mapping[str, Any], builder: Component | None, locate: Locate) -> None:
        self._page = page
        self._builder = builder
        self._locate = locate
        self._values: dict[str, type] = {}  # every value made so far, by name
        self._read: set[str] = set()
        self.faults: list[UserError] = []

    def plan(self) -> Plan | None:
        """Return the plan, or None when there are faults (all of them in ``faults``)."""
        self._fields()
        converters = self._converters()
        steps = [step for name, values in self._mapping("retrieve").items() if (step := self._step(name, values))]
        sections = [
            section for name, values in self._mapping("context").items() if (section := self._section(name, values))
        ]
        generator = self._generator(bool(sections))
        unread = [name for name in self._values if name not in self._read]
        if not self.faults:  # a fault above can be why nobody reads it
            for name in unread:
                self._fault(
                    ("retrieve", name.partition(".")[0]),
                    f"nothing reads the result of step {name!r}.",
                    "Wire it to a later step or a context section, or remove it.",
                )
        if self.faults:
            return None
        return Plan(str(self._page["name"]), tuple(converters), tuple(steps), tuple(sections), generator)

    def _fault(self, path: tuple[str, ...], problem: str, fix: str = "") -> None:
        self.faults.append(UserError(f"{self._locate('method', *path)}: {problem}", fix))

    def _fields(self) -> None:
        allowed = {name: Setting(name, item.annotation, None) for name, item in FIELDS.items()}
        self.faults += settings_faults(self._page, allowed, self._locate, ("method",), "a method")
        if not self._page.get("name"):
            self._fault((), "the method has no name.", "Write name: …")
        for name in self._mapping("requires"):
            if name not in ("graph", "chunking", "index", "embedder", "dataset", "llm"):
                self._fault(
                    ("requires", name),
                    f"requires names the group {name!r}.",
                    "It may name graph, chunking, index, embedder, llm.",
                )

    def _mapping(self, field: str) -> Mapping[str, Any]:
        value = self._page.get(field)
        return value if isinstance(value, Mapping) else {}

    def _converters(self) -> list[tuple[Component, Mapping[str, Any]]]:
        found: list[tuple[Component, Mapping[str, Any]]] = []
        for name, values in self._mapping("question").items():
            path = ("question", name)
            if not isinstance(values, Mapping) or "by" not in values:
                self._fault(path, f"{name} does not say by what it is made.", f"Write {name}: {{by: model}}.")
                continue
            component = self._component("converter", f"{name}.{values['by']}", (*path, "by"))
            if component is not None:
                settings = {key: value for key, value in values.items() if key != "by"}
                self.faults += settings_faults(
                    settings, component.settings, self._locate, ("method", *path), f"converter {component.name}"
                )
                found.append((component, filled(settings, component.settings)))
                self._borrows(component, path)
        return found

    def _component(self, kind: str, name: str, path: tuple[str, ...]) -> Component | None:
        try:
            return REGISTRY.get(kind, name)
        except UserError as error:
            self._fault(path, error.problem[0].lower() + error.problem[1:], error.fix)
            return None

    def _borrows(self, component: Component, path: tuple[str, ...]) -> None:
        for port in component.ports:
            if port.annotation in GRAPH_LOANS and self._builder is None:
                self._fault(
                    path,
                    f"{component.name} reads {LOANS[port.annotation]}, and this method builds no graph.",
                    "Write requires: {graph: kg} in the method's page, or graph=kg on the command line.",
                )
                return
        if self._builder is not None:
            for attribute in component.needs:
                if attribute not in self._builder.provides:
                    carrying = [b.name for b in REGISTRY.all("builder") if attribute in b.provides]
                    self._fault(
                        path,
                        f"{component.name} reads {attribute}, which the graph {self._builder.name} has not.",
                        f"Graphs that have it: {', '.join(carrying) or 'none'}.",
                    )

    def _step(self, name: str, values: Any) -> Step | None:
        path = ("retrieve", name)
        if not isinstance(values, Mapping) or "operator" not in values:
            self._fault(path, f"step {name!r} names no operator.", f"Write {name}: {{operator: …}}.")
            return None
        component = self._component("operator", str(values["operator"]), (*path, "operator"))
        if component is None:
            return None
        before = len(self.faults)
        wires = self._wires(component, values, path)
        settings = self._step_settings(component, values, path)
        self._borrows(component, path)
        entities = filled(settings, component.settings).get("by") == "entities" and "entities" not in self._mapping("question")
        if entities:
            self._fault(
                (*path, "by"),
                f"{component.name} reads the questions' entities, which the method does not ask for.",
                "Write question: {entities: {by: model}}.",
            )
        produced = _results(component)
        if not produced:
            self._fault(
                path,
                f"{component.name} returns {type_name(component.returns)}, which is no value that flows.",
                f"Return one of {', '.join(t.__name__ for t in (*WIRES, Questions))}.",
            )
        for suffix, kind in produced.items():
            self._values[f"{name}.{suffix}" if suffix else name] = kind
        if len(self.faults) > before:
            return None
        return Step(name, component, wires, str(values.get("join", "max")), filled(settings, component.settings))

    def _step_settings(self, component: Component, values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        wired = {port.name for port in component.ports if port.annotation not in LOANS or port.name in values}
        settings = {key: value for key, value in values.items() if key not in {"operator", "join", *wired}}
        known = {**component.settings, **{name: Setting(name, Any, None) for name in wired}}
        self.faults += settings_faults(settings, known, self._locate, ("method", *path), component.name)
        if "join" in values and (values["join"] not in ("max", "sum")):
            self._fault((*path, "join"), f"join is max or sum, and found {values['join']!r}.", "Write join: max.")
        return settings

    def _wires(
        self, component: Component, values: Mapping[str, Any], path: tuple[str, ...]
    ) -> dict[str, tuple[str, ...]]:
        wires: dict[str, tuple[str, ...]] = {}
        for port in component.ports:
            if port.optional and port.name in values and values[port.name] is None:
                continue  # the page leaves an optional input unwired
            if port.name in values:
                wires[port.name] = self._named(component, port, values[port.name], (*path, port.name))
            elif port.annotation in LOANS:
                continue
            elif port.annotation not in WIRES:
                self._fault(
                    path,
                    f"{component.name} takes {port.name} of type {type_name(port.annotation)}, which is neither lent nor wired.",
                    "Use a value or a loan of the framework.",
                )
            else:
                fitting = [name for name, kind in self._values.items() if kind is port.annotation]
                if len(fitting) == 1:
                    wires[port.name] = (fitting[0],)
                    self._read.add(fitting[0])
                elif fitting or not port.optional:
                    said = (
                        f"{len(fitting)} values fit: {', '.join(fitting)}" if fitting else "no earlier step makes one"
                    )
                    fix = (
                        f"Say which: {port.name}: {fitting[0]}, or join them: {port.name}: [{', '.join(fitting)}]"
                        + (f", or write {port.name}: null." if port.optional else ".")
                        if fitting
                        else f"Add a step that makes {port.annotation.__name__}."
                    )
                    self._fault(
                        path, f"{component.name} takes {port.annotation.__name__} as {port.name!r}, and {said}.", fix
                    )
        return wires

    def _named(self, component: Component, port: Port, names: Any, path: tuple[str, ...]) -> tuple[str, ...]:
        listed = names if isinstance(names, list) else [names]
        if not listed:
            self._fault(
                path,
                f"{component.name} takes {port.name}, and the list names no value.",
                _of_type(self._values, port.annotation),
            )
        for name in listed:
            kind = self._values.get(str(name))
            if kind is None:
                self._fault(
                    path,
                    f"{component.name} takes {name!r} as {port.name}, which no earlier step makes.",
                    nearest(str(name), self._values),
                )
            elif kind is not port.annotation:
                self._fault(
                    path,
                    f"{component.name} wants {port.annotation.__name__} as {port.name!r}, and {name!r} is {kind.__name__}.",
                    _of_type(self._values, port.annotation),
                )
            self._read.add(str(name))
        return tuple(str(name) for name in listed)

    def _section(self, name: str, values: Any) -> Section | None:
        path = ("context", name)
        if not isinstance(values, Mapping) or "from" not in values:
            self._fault(path, f"context section {name!r} does not say what it shows.", f"Write {name}: {{from: …}}.")
            return None
        for key, value in values.items():
            if key not in _SECTION:
                self._fault((*path, key), f"a context section has no setting {key!r}.", nearest(key, _SECTION))
            elif fault := value_fault(value, _SECTION[key], self._locate("method", *path, key), f"section {name}"):
                self.faults.append(fault)
        listed = values["from"] if isinstance(values["from"], list) else [values["from"]]
        if not listed:
            self._fault(
                (*path, "from"), f"section {name} shows nothing: the list is empty.", _of_type(self._values, Chunks)
            )
        kinds = set()
        for source in map(str, listed):
            self._read.add(source)
            if source not in self._values:
                self._fault(
                    (*path, "from"),
                    f"section {name} shows {source!r}, which no step makes.",
                    nearest(source, self._values),
                )
            else:
                kinds.add(self._values[source])
        if len(kinds) > 1:
            self._fault(
                (*path, "from"),
                f"section {name} mixes {' and '.join(sorted(k.__name__ for k in kinds))}.",
                "Give each kind a section of its own.",
            )
        if len(kinds) != 1:
            return None
        kind = kinds.pop()
        if kind is not Chunks:
            self._fault(
                (*path, "from"),
                f"section {name} shows {kind.__name__}; contexts show Chunks.",
                _of_type(self._values, Chunks),
            )
        return Section(name, tuple(map(str, listed)), kind, values.get("top_k"), values.get("tokens"))

    def _generator(self, has_context: bool) -> tuple[Component, Mapping[str, Any]] | None:
        values = self._mapping("answer")
        if not values:
            if not self._mapping("retrieve"):
                self._fault((), "the method neither retrieves nor answers.", "Write answer: {generator: direct}.")
            return None
        component = self._component("generator", str(values.get("generator")), ("answer",))
        if component is None:
            return None
        settings = {key: value for key, value in values.items() if key != "generator"}
        self.faults += settings_faults(
            settings, component.settings, self._locate, ("method", "answer"), f"generator {component.name}"
        )
        if self._mapping("retrieve") and not has_context and not self.faults:
            self._fault(
                ("retrieve",),
                "the method retrieves, and its context shows none of it.",
                "Write context: {chunks: {from: …}}.",
            )
        return component, filled(settings, component.settings)


def _results(component: Component) -> dict[str, type]:
    """Return the values a component makes: one under "", or the fields of a NamedTuple."""
    returns = component.returns
    if returns in (*WIRES, Questions):
        return {"": returns}
    fields = getattr(returns, "__annotations__", {}) if isinstance(returns, type) and issubclass(returns, tuple) else {}
    return dict(fields) if fields and all(kind in WIRES for kind in fields.values()) else {}


def _of_type(values: Mapping[str, type], wanted: type) -> str:
    fitting = [name for name, kind in values.items() if kind is wanted]
    return f"Of that type: {', '.join(fitting)}." if fitting else f"No step makes {wanted.__name__}."
