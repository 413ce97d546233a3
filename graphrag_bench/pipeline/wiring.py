"""The steps of a method, wired: every operator's inputs found by name or by type, loops included.

A step's wires are found by name, or left out when exactly one value of the type has been made so far; two are a fault,
never a guess.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graphrag_bench.config.schema import Locate, filled, settings_faults, type_name, value_fault
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.loans import GRAPH_LOANS, LOANS
from graphrag_bench.pipeline.method import Loop, Step
from graphrag_bench.pipeline.texts import Questions, Truths
from graphrag_bench.pipeline.wires import WIRES, parts_of
from graphrag_bench.registry import REGISTRY, Component, Port, Setting, nearest

Path = tuple[str, ...]
REPEAT = {
    name: Setting(name, kind, default)
    for name, kind, default in (
        ("max", int, ...),
        ("carry", dict[str, str] | None, None),
        ("steps", dict[str, Any], ...),
        ("until", str | None, None),
        ("collect", Literal["last", "union"], "last"),
    )
}
READ_BY = {
    "entities": "entities",
    "low": "keywords",
    "high": "keywords",
}  # what `by` reads -> the converter that makes it


@dataclass(frozen=True)
class Ground:
    """What a method stands on: the graph it will have, by name, and the attributes it will carry."""

    graph: str | None = None
    attributes: frozenset[str] = frozenset()


@dataclass
class Scope:
    """The values that steps can read, by name; which of them are read, and which the steps wired in it have made."""

    values: dict[str, type] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)

    def find(self, name: str) -> type | None:
        """Return the type of a value, or of a part of one (``walk.nodes``); None where there is none. Marks it as read."""
        if name in self.values:
            self.read.add(name)
            return self.values[name]
        base, _, part = name.rpartition(".")
        if base in self.values and part in (parts := parts_of(self.values[base])):
            self.read.add(base)
            return parts[part]
        return None

    def names(self, *, wordings: bool = False) -> Iterator[str]:
        """Yield every name that can be written, parts included; those of wordings only where one is wanted."""
        for name, kind in self.values.items():
            if kind is Questions and not wordings:
                continue
            yield name
            yield from (f"{name}.{part}" for part in parts_of(kind))

    def of_type(self, wanted: Any) -> list[str]:
        """Return the names of the values of a type, parts left out."""
        return [name for name, kind in self.values.items() if kind is wanted]

    def hint(self, wanted: Any) -> str:
        """Return which values, or parts of values, have a type, as a sentence."""
        fitting = self.of_type(wanted)
        fitting += [
            f"{n}.{p}" for n, kind in self.values.items() for p, made in parts_of(kind).items() if made is wanted
        ]
        return f"Of that type: {', '.join(fitting)}." if fitting else f"No step makes {type_name(wanted)}."


class Wiring:
    """Wires the steps of one method; every fault is handed to ``fault(path, problem, fix)``."""

    def __init__(self, asked: Mapping[str, Any], ground: Ground, locate: Locate, faults: list[UserError]) -> None:
        self._asked = asked  # the method's question part: which converters there are
        self._ground = ground
        self._locate = locate
        self._faults = faults

    def fault(self, path: Path, problem: str, fix: str = "") -> None:
        """Note what is wrong at a place of the method's page."""
        self._faults.append(UserError(f"{self._locate('method', *path)}: {problem}", fix))

    def steps(self, page: Mapping[str, Any], scope: Scope, path: Path) -> tuple[Step | Loop, ...]:
        """Wire a mapping of steps, each seeing what those before it made."""
        found: list[Step | Loop] = []
        for name, values in page.items():
            if isinstance(values, Mapping) and "repeat" in values:
                loop = self._loop(name, values, scope, (*path, name))
                found += [loop] if loop else []
            else:
                step = self._step(name, values, scope, (*path, name))
                found += [step] if step else []
        return tuple(found)

    def component(self, kind: str, name: str, path: Path) -> Component | None:
        """Return a component, or note that there is none of that name."""
        try:
            return REGISTRY.get(kind, name)
        except UserError as error:
            self.fault(path, error.problem[0].lower() + error.problem[1:], error.fix)
            return None

    def borrows(self, component: Component, path: Path) -> None:
        """Note what a component reads of the graph that the graph has not."""
        graph = self._ground.graph
        for port in component.ports:
            if port.annotation in GRAPH_LOANS and graph is None:
                self.fault(
                    path,
                    f"{component.name} reads {LOANS[port.annotation]}, and this method builds no graph.",
                    "Write requires: {graph: kg} in the method's page, or graph=kg on the command line.",
                )
                return
        if graph is None:
            return
        for attribute in component.needs:
            either = attribute.split("|")
            if self._ground.attributes.isdisjoint(either):
                carrying = [b.name for b in REGISTRY.all("builder") if not set(b.provides).isdisjoint(either)]
                fix = f"Graphs that have it: {', '.join(carrying) or 'none'}."
                if either[0].startswith("community"):
                    fix = "Write requires: {community: leiden} in the method's page, or community=leiden on the command line."
                    if either == ["community.report"] and "community" in self._ground.attributes:
                        fix = "Write community=leiden community.reports=model (or =extractive) on the command line."
                self.fault(path, f"{component.name} reads {' or '.join(either)}, which the graph {graph} has not.", fix)

    def _loop(self, name: str, values: Mapping[str, Any], scope: Scope, path: Path) -> Loop | None:
        before = len(self._faults)
        page = values["repeat"]
        if extra := [key for key in values if key != "repeat"]:
            self.fault(
                (*path, extra[0]), f"{name} repeats steps and has no setting {extra[0]!r}.", "Move it into repeat."
            )
        if not isinstance(page, Mapping):
            self.fault(path, f"{name} does not say what it repeats.", "Write repeat: {max: 3, steps: {…}}.")
            return None
        path = (*path, "repeat")
        known = {key: Setting(key, item.annotation, None) for key, item in REPEAT.items()}
        self._faults += settings_faults(page, known, self._locate, ("method", *path), f"loop {name}")
        for key in ("max", "steps"):
            if page.get(key) in (None, {}):
                self.fault(path, f"loop {name} does not say its {key}.", "Write repeat: {max: 3, steps: {…}}.")
        rounds = page.get("max") if isinstance(page.get("max"), int) else 1
        if rounds is not None and rounds < 1:
            self.fault((*path, "max"), f"loop {name} wants max to be at least 1, and found {rounds}.", "Write max: 1.")
        carry = page["carry"] if isinstance(page.get("carry"), Mapping) else {}
        inner = Scope(dict(scope.values))
        for carried, outer in carry.items():
            kind = scope.find(str(outer))
            if kind is None:
                self.fault(
                    (*path, "carry", carried),
                    f"{carried} begins with {outer!r}, which no earlier step makes.",
                    nearest(str(outer), scope.names(wordings=True)),
                )
                continue
            inner.values[carried] = kind
        steps_page = page["steps"] if isinstance(page.get("steps"), Mapping) else {}
        earlier = {made.partition(".")[0] for made in scope.values}
        taken = [step for step in steps_page if step in earlier and step not in carry]
        for step in taken:
            self.fault(
                (*path, "steps", step),
                f"{step!r} is made before the loop already.",
                "Give it another name, or carry it.",
            )
        begins = {carried: inner.values.get(carried) for carried in carry}
        steps = self.steps(steps_page, inner, (*path, "steps"))
        for carried, kind in begins.items():
            if carried not in inner.made:
                fields = ", ".join(sorted(made for made in inner.made if made.startswith(f"{carried}.")))
                if carried in steps_page and not fields:
                    continue  # its step is not wired, and that is said
                fix = f"Carry one of its results: {fields}." if fields else "Name a step so, or do not carry it."
                self.fault((*path, "carry", carried), f"no step of loop {name} makes {carried!r}.", fix)
            elif kind is not None and inner.values[carried] is not kind:
                self.fault(
                    (*path, "steps", carried),
                    f"{carried} begins as {kind.__name__} and is made as {inner.values[carried].__name__}.",
                    inner.hint(kind),
                )
        until = page.get("until")
        if until is not None:
            kind = inner.find(str(until))
            if kind is not Truths:
                found = f"and {until!r} is {kind.__name__}" if kind else f"and no step makes {until!r}"
                self.fault((*path, "until"), f"until wants yes or no for each question, {found}.", inner.hint(Truths))
            elif until not in inner.made:
                problem = f"until names {until!r}, which no round of loop {name} changes."
                self.fault((*path, "until"), problem, "Name a step of the loop.")
        scope.read |= (inner.read - carry.keys()) & scope.values.keys()
        for made, kind in inner.values.items():
            if made in carry or made not in scope.values:
                scope.values[f"{name}.{made}"] = kind
                scope.made.add(f"{name}.{made}")
                if made in inner.read or made in carry:
                    scope.read.add(f"{name}.{made}")
        if len(self._faults) > before:
            return None
        collect: Literal["last", "union"] = "union" if page.get("collect") == "union" else "last"
        return Loop(name, int(rounds or 1), {str(k): str(v) for k, v in carry.items()}, steps, until, collect)

    def _step(self, name: str, values: Any, scope: Scope, path: Path) -> Step | None:
        if not isinstance(values, Mapping) or "operator" not in values:
            self.fault(path, f"step {name!r} names no operator.", f"Write {name}: {{operator: …}}.")
            return None
        component = self.component("operator", str(values["operator"]), (*path, "operator"))
        if component is None:
            return None
        before = len(self._faults)
        wires = self._wires(component, values, scope, path)
        settings = self._step_settings(component, values, path)
        self.borrows(component, path)
        converter = READ_BY.get(str(filled(settings, component.settings).get("by")))
        reworded = any(port.annotation is Questions and port.name in wires for port in component.ports)
        if converter and not reworded and converter not in self._asked:
            self.fault(
                (*path, "by"),
                f"{component.name} reads the questions' {converter}, which the method does not ask for.",
                f"Write question: {{{converter}: {{by: model}}}}.",
            )
        produced = _results(component)
        if not produced:
            self.fault(
                path,
                f"{component.name} returns {type_name(component.returns)}, which is no value that flows.",
                f"Return one of {', '.join(t.__name__ for t in (*WIRES, Questions))}.",
            )
        for suffix, kind in produced.items():
            made = f"{name}.{suffix}" if suffix else name
            scope.values[made] = kind
            scope.made.add(made)
            scope.read.discard(made)
        if len(self._faults) > before:
            return None
        return Step(name, component, wires, str(values.get("join", "max")), filled(settings, component.settings))

    def _step_settings(self, component: Component, values: Mapping[str, Any], path: Path) -> dict[str, Any]:
        wired = {port.name for port in component.ports if port.annotation not in LOANS or port.name in values}
        settings = {key: value for key, value in values.items() if key not in {"operator", "join", *wired}}
        known = {**component.settings, **{name: Setting(name, Any, None) for name in wired}}
        self._faults += settings_faults(settings, known, self._locate, ("method", *path), component.name)
        if "join" in values and (values["join"] not in ("max", "sum")):
            self.fault((*path, "join"), f"join is max or sum, and found {values['join']!r}.", "Write join: max.")
        return settings

    def _wires(
        self, component: Component, values: Mapping[str, Any], scope: Scope, path: Path
    ) -> dict[str, tuple[str, ...]]:
        wires: dict[str, tuple[str, ...]] = {}
        for port in component.ports:
            if port.optional and port.name in values and values[port.name] is None:
                continue  # the page leaves an optional input unwired
            if port.name in values:
                wires[port.name] = self._named(component, port, values[port.name], scope, (*path, port.name))
            elif port.annotation in LOANS:
                continue
            elif port.annotation not in WIRES:
                self.fault(
                    path,
                    f"{component.name} takes {port.name} of type {type_name(port.annotation)}, which is neither lent nor wired.",
                    "Use a value or a loan of the framework.",
                )
            elif (name := self._only(component, port, scope, path)) is not None:
                wires[port.name] = (name,)
        return wires

    def _only(self, component: Component, port: Port, scope: Scope, path: Path) -> str | None:
        """Return the one value that fits a port the page does not wire, or note that there is none, or more than one."""
        fitting = scope.of_type(port.annotation)
        if len(fitting) == 1:
            scope.read.add(fitting[0])
            return fitting[0]
        if not fitting and port.optional:
            return None
        wanted = f"{component.name} takes {port.annotation.__name__} as {port.name!r}"
        if fitting:
            self.fault(
                path,
                f"{wanted}, and {len(fitting)} values fit: {', '.join(fitting)}.",
                f"Say which: {port.name}: {fitting[0]}, or join them: {port.name}: [{', '.join(fitting)}]"
                + (f", or write {port.name}: null." if port.optional else "."),
            )
        else:
            parts = scope.hint(port.annotation)
            fix = parts if parts.startswith("Of that type") else f"Add a step that makes {port.annotation.__name__}."
            self.fault(path, f"{wanted}, and no earlier step makes one.", fix)
        return None

    def _named(self, component: Component, port: Port, names: Any, scope: Scope, path: Path) -> tuple[str, ...]:
        listed = names if isinstance(names, list) else [names]
        if not listed:
            problem = f"{component.name} takes {port.name}, and the list names no value."
            self.fault(path, problem, scope.hint(port.annotation))
        for name in map(str, listed):
            kind = scope.find(name)
            if kind is None:
                self.fault(
                    path,
                    f"{component.name} takes {name!r} as {port.name}, which no earlier step makes.",
                    nearest(name, scope.names(wordings=port.annotation is Questions)),
                )
            elif kind is not port.annotation:
                self.fault(
                    path,
                    f"{component.name} wants {type_name(port.annotation)} as {port.name!r}, and {name!r} is {kind.__name__}.",
                    scope.hint(port.annotation),
                )
        if len(listed) > 1 and port.annotation is Questions:
            self.fault(
                path, f"{component.name} takes one wording of the questions, and {len(listed)} are named.", "Name one."
            )
        return tuple(map(str, listed))


def section_faults(
    values: Mapping[str, Any], fields: Mapping[str, Setting], locate: Callable[[str], str], name: str
) -> list[UserError]:
    """Return what is wrong with the settings of a context section."""
    faults = []
    for key, value in values.items():
        if key not in fields:
            faults.append(UserError(f"{locate(key)}: a context section has no setting {key!r}.", nearest(key, fields)))
        elif fault := value_fault(value, fields[key], locate(key), f"section {name}"):
            faults.append(fault)
    return faults


def _results(component: Component) -> dict[str, type]:
    """Return the values a component makes: one under "", or the fields of a NamedTuple."""
    returns = component.returns
    flowing = (*WIRES, Questions)
    if returns in flowing:
        return {"": returns}
    fields = getattr(returns, "__annotations__", {}) if isinstance(returns, type) and issubclass(returns, tuple) else {}
    return dict(fields) if fields and all(kind in flowing for kind in fields.values()) else {}
