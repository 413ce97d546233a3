"""Read a method's page into a plan, and check it before anything is spent.

All faults are collected; each says where it stands, what was wanted, what was found and what to write.
"""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.config.schema import Locate, filled, settings_faults
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.method import Chosen, Plan, Section
from graphrag_bench.pipeline.texts import Questions, Texts
from graphrag_bench.pipeline.walks import Subgraphs
from graphrag_bench.pipeline.wires import ASKED, RANKINGS
from graphrag_bench.pipeline.wiring import Ground, Scope, Wiring, section_faults
from graphrag_bench.registry import Setting, nearest

SHOWN = (*RANKINGS, Subgraphs, Texts)
REQUIRABLE = ("graph", "community", "chunking", "index", "embedder", "dataset", "llm")
FIELDS = {
    name: Setting(name, kind, default)
    for name, kind, default in (
        ("name", str, ...),
        ("source", str, ""),
        ("notes", str, ""),
        ("top_k", int | None, None),
        ("window", int | None, None),
        ("requires", dict[str, str] | None, None),
        ("question", dict[str, Any] | None, None),
        ("retrieve", dict[str, Any] | None, None),
        ("context", dict[str, Any] | None, None),
        ("cut", list[str] | None, None),
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


class Planner:
    """Checks one method page against the registry and the graph it will have."""

    def __init__(self, page: Mapping[str, Any], ground: Ground, locate: Locate) -> None:
        self._page = page
        self._locate = locate
        # the batch as it was asked, by the one name no step need make: what a loop over wordings begins with
        self._scope = Scope({ASKED: Questions}, {ASKED})
        self.faults: list[UserError] = []
        self._wiring = Wiring(self._mapping("question"), ground, locate, self.faults)
        self._fault = self._wiring.fault

    def plan(self) -> Plan | None:
        """Return the plan, or None when there are faults (all of them in ``faults``)."""
        self._fields()
        converters = self._converters()
        steps = self._wiring.steps(self._mapping("retrieve"), self._scope, ("retrieve",))
        sections = tuple(
            section for name, values in self._mapping("context").items() if (section := self._section(name, values))
        )
        cut = self._cut()
        generator = self._generator(bool(sections))
        if not self.faults:  # a fault above can be why nobody reads it
            for name in self._scope.values:
                if name not in self._scope.read:
                    self._fault(
                        ("retrieve", name.partition(".")[0]),
                        f"nothing reads the result of step {name!r}.",
                        "Wire it to a later step or a context section, or remove it.",
                    )
        if self.faults:
            return None
        return Plan(str(self._page["name"]), converters, steps, sections, cut, generator)

    def _fields(self) -> None:
        allowed = {name: Setting(name, item.annotation, None) for name, item in FIELDS.items()}
        self.faults += settings_faults(self._page, allowed, self._locate, ("method",), "a method")
        if not self._page.get("name"):
            self._fault((), "the method has no name.", "Write name: …")
        for name in self._mapping("requires"):
            if name not in REQUIRABLE:
                self._fault(
                    ("requires", name), f"requires names the group {name!r}.", f"It may name {', '.join(REQUIRABLE)}."
                )

    def _mapping(self, field: str) -> Mapping[str, Any]:
        value = self._page.get(field)
        return value if isinstance(value, Mapping) else {}

    def _converters(self) -> tuple[Chosen, ...]:
        found: list[Chosen] = []
        for name, values in self._mapping("question").items():
            path = ("question", name)
            if not isinstance(values, Mapping) or "by" not in values:
                self._fault(path, f"{name} does not say by what it is made.", f"Write {name}: {{by: model}}.")
                continue
            component = self._wiring.component("converter", f"{name}.{values['by']}", (*path, "by"))
            if component is not None:
                settings = {key: value for key, value in values.items() if key != "by"}
                self.faults += settings_faults(
                    settings, component.settings, self._locate, ("method", *path), f"converter {component.name}"
                )
                found.append((component, filled(settings, component.settings)))
                self._wiring.borrows(component, path)
        return tuple(found)

    def _section(self, name: str, values: Any) -> Section | None:
        path = ("context", name)
        if not isinstance(values, Mapping) or "from" not in values:
            self._fault(path, f"context section {name!r} does not say what it shows.", f"Write {name}: {{from: …}}.")
            return None
        self.faults += section_faults(values, _SECTION, lambda key: self._locate("method", *path, key), name)
        listed = values["from"] if isinstance(values["from"], list) else [values["from"]]
        if not listed:
            problem = f"section {name} shows nothing: the list is empty."
            self._fault((*path, "from"), problem, nearest("", self._scope.names()))
        kinds = set()
        for source in map(str, listed):
            kind = self._scope.find(source)
            if kind is None:
                self._fault(
                    (*path, "from"), f"section {name} shows {source!r}, which no step makes.",
                    nearest(source, self._scope.names()),
                )
            else:
                kinds.add(kind)
        if len(kinds) > 1:
            self._fault(
                (*path, "from"),
                f"section {name} mixes {' and '.join(sorted(k.__name__ for k in kinds))}.",
                "Give each kind a section of its own.",
            )
        if len(kinds) != 1:
            return None
        kind = kinds.pop()
        if kind not in SHOWN:
            self._fault(
                (*path, "from"),
                f"section {name} shows {kind.__name__}; contexts show {', '.join(k.__name__ for k in SHOWN)}.",
                "Show a part of it, such as its nodes.",
            )
        return Section(name, tuple(map(str, listed)), kind, values.get("top_k"), values.get("tokens"))

    def _cut(self) -> tuple[str, ...]:
        """Return the sections in the order in which they give way; by default the last gives way first."""
        names = list(self._mapping("context"))
        said = self._page.get("cut")
        listed = [str(name) for name in said] if isinstance(said, list) else []
        for name in listed:
            if name not in names:
                self._fault(("cut",), f"cut names {name!r}, which is no section of the context.", nearest(name, names))
        return tuple(dict.fromkeys([*listed, *reversed(names)]))

    def _generator(self, has_context: bool) -> Chosen | None:
        values = self._mapping("answer")
        if not values:
            if not self._mapping("retrieve"):
                self._fault((), "the method neither retrieves nor answers.", "Write answer: {generator: direct}.")
            return None
        component = self._wiring.component("generator", str(values.get("generator")), ("answer",))
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
