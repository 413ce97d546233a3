"""A method's wiring as a scene: boxes in the lanes of Table 3, wires between them, frames around loops and the context."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.loans import LOANS
from graphrag_bench.pipeline.method import Loop, Plan, Section, Step
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.wires import ASKED, parts_of
from graphrag_bench.registry import Component

LANES = ("question", "node", "relationship", "chunk", "subgraph", "community")
_LANE_OF = {"Nodes": 1, "Relationships": 2, "Chunks": 3, "Subgraphs": 4, "Communities": 5}  # by the type of a value
_BY = {"question": "question", "entities": "entities", "low": "keywords", "high": "keywords"}
_READ_AS = {"question": "question", "entities": "entities", "low": "low keywords", "high": "high keywords"}
QUESTION, ANSWER = "question", "answer"


@dataclass(frozen=True)
class Box:
    """A step, a converter, a section, a loop's head or the generator; ``lane`` None is a bar across all lanes."""

    key: str
    lane: int | None
    row: int
    title: str
    operator: str = ""
    settings: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    look: str = "step"
    about: str = ""


@dataclass(frozen=True)
class Wire:
    """A value on its way: ``value`` is what it is in the box that makes it, ``label`` the type that flows."""

    source: str
    target: str
    value: str
    label: str
    back: bool = False


@dataclass(frozen=True)
class Frame:
    """A frame around rows: a loop, or the context."""

    title: str
    first: int
    last: int
    depth: int
    look: str


@dataclass
class Scene:
    """All that is drawn, without a coordinate."""

    title: str
    about: str
    boxes: dict[str, Box] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows the boxes take."""
        return max(box.row for box in self.boxes.values()) + 1


@dataclass(frozen=True)
class _Value:
    box: str
    name: str
    kind: str
    type: Any


def scene(plan: Plan) -> Scene:
    """Return what a plan's drawing shows.

    Rows follow the wires: a step stands below all that it reads, a loop below everything before it. Steps that do not read
    each other may share a row.
    """
    return _Stage(plan).scene


class _Stage:
    def __init__(self, plan: Plan) -> None:
        self.scene = Scene(plan.name, plan.line())
        self._floor = 1  # the first row that is free of earlier loops
        self._add(Box(QUESTION, 0, 0, "question", look="question", about="the question as it was asked"))
        asked = self._converters(plan)
        self._values = {ASKED: _Value(QUESTION, "question", Questions.__name__, Questions)}
        self._asked = asked
        self._walk(plan.steps, self._values, "", 0)
        self._sections(plan.sections)
        if plan.generator:
            component, settings = plan.generator
            written = [*_changed(component, settings), *_cut(plan)]
            row = self.scene.rows
            marks = _marks(component, _questions(component))
            self._add(Box(ANSWER, None, row, "answer", component.name, tuple(written), marks, "bar", component.summary))
            self._wire(QUESTION, ANSWER, "question", "question")
            for section in plan.sections:
                self._wire(f"context {section.name}", ANSWER, "text", "text")

    def _converters(self, plan: Plan) -> dict[str, str]:
        asked = {"question": QUESTION}
        for component, settings in plan.converters:
            name, _, by = component.name.partition(".")
            key = f"question {name}"
            self._add(
                Box(
                    key,
                    0,
                    self._free(1, 0),
                    name,
                    f"by {by}",
                    _changed(component, settings),
                    _marks(component, _questions(component)),
                    "converter",
                    component.summary,
                )
            )
            self._wire(QUESTION, key, "question", "question")
            asked[name] = key
        return asked

    def _walk(self, steps: tuple[Step | Loop, ...], values: dict[str, _Value], prefix: str, depth: int) -> None:
        for step in steps:
            if isinstance(step, Loop):
                self._loop(step, values, prefix, depth)
            else:
                self._step(step, values, prefix)

    def _step(self, step: Step, values: dict[str, _Value], prefix: str) -> None:
        key = prefix + step.name
        reads = [(_find(values, name)) for names in step.wires.values() for name in names]
        sources = [(value.box, value.name, value.kind) for value in reads]
        lent = {port.annotation: port.name for port in step.component.ports if port.annotation in LOANS}
        by = str(
            step.settings.get("by", step.component.settings["by"].default if "by" in step.component.settings else "")
        )
        hidden: tuple[Any, ...] = ()
        reworded = any(kind in ("Texts", "Questions") for _, _, kind in sources)  # other words stand for the question's
        asks = Questions in lent and lent[Questions] not in step.wires and not reworded
        if asks and (_BY.get(by) in self._asked or not sources):
            sources.insert(
                0, (self._asked.get(_BY.get(by, ""), QUESTION), by or "question", _READ_AS.get(by, "question"))
            )
            hidden = (Questions,)
        lane = _lane(step.component)
        row = self._free(max([self._floor, *(self.scene.boxes[box].row + 1 for box, _, _ in sources)]), lane)
        settings = list(_changed(step.component, step.settings, ("by",) if hidden else ()))
        if any(len(names) > 1 for names in step.wires.values()):
            settings.append(f"join {step.join}")
        marks = _marks(step.component, (*step.wires, *(lent[kind] for kind in hidden)))
        self._add(
            Box(key, lane, row, step.name, step.component.name, tuple(settings), marks, "step", step.component.summary)
        )
        for box, name, kind in sources:
            self._wire(box, key, name, kind)
        for suffix, made in _made(step.component).items():
            full = f"{step.name}.{suffix}" if suffix else step.name
            values[full] = _Value(key, suffix, made.__name__, made)

    def _loop(self, loop: Loop, values: dict[str, _Value], prefix: str, depth: int) -> None:
        key = prefix + loop.name
        first = max(self.scene.rows, self._floor)
        told = (
            f"at most {loop.rounds} rounds",
            *([f"until {loop.until}"] if loop.until else []),
            f"collect {loop.collect}",
            *([f"carry {', '.join(loop.carry)}"] if loop.carry else []),
        )
        self._add(
            Box(
                key, None, first, loop.name, "repeat", told, (), "loop", "what the steps below do again, round by round"
            )
        )
        inner = dict(values)
        for carried, outer in loop.carry.items():
            value = _find(values, outer)
            if outer == ASKED:  # with all that was asked of it
                for read, box in self._asked.items():
                    self._wire(box, key, read, _READ_AS.get(read, read))
            else:
                self._wire(value.box, key, value.name, value.kind)
            inner[carried] = _Value(key, carried, value.kind, value.type)
        self._floor = first + 1
        self._walk(loop.steps, inner, f"{key}.", depth + 1)
        for carried in loop.carry:
            value = inner[carried]
            self.scene.wires.append(Wire(value.box, key, value.name, value.kind, back=True))
        if loop.until:
            value = _find(inner, loop.until)
            self.scene.wires.append(Wire(value.box, key, value.name, value.kind, back=True))
        self.scene.frames.append(Frame(loop.name, first, self.scene.rows - 1, depth, "loop"))
        self._floor = self.scene.rows
        for name, value in inner.items():
            if name in loop.carry or name not in values:
                values[f"{loop.name}.{name}"] = value

    def _sections(self, sections: tuple[Section, ...]) -> None:
        if not sections:
            return
        first = self.scene.rows
        self._floor = first
        for number, section in enumerate(sections, 1):
            lane = _LANE_OF.get(section.kind.__name__, 0)
            told = [f"top_k {section.top_k}"] if section.top_k is not None else []
            told += [f"{section.tokens:,} tokens"] if section.tokens is not None else []
            key = f"context {section.name}"
            self._add(
                Box(
                    key,
                    lane,
                    self._free(first, lane),
                    f"{number} {section.name}",
                    "",
                    tuple(told),
                    (),
                    "section",
                    f"section {number} of the context",
                )
            )
            for name in section.sources:
                value = _find(self._values, name)
                self._wire(value.box, key, value.name, value.kind)
        self.scene.frames.append(Frame("context", first, self.scene.rows - 1, 0, "context"))

    def _add(self, box: Box) -> None:
        self.scene.boxes[box.key] = box

    def _wire(self, source: str, target: str, value: str, label: str) -> None:
        wire = Wire(source, target, value, label)
        if wire not in self.scene.wires:
            self.scene.wires.append(wire)

    def _free(self, row: int, lane: int) -> int:
        taken = {box.row for box in self.scene.boxes.values() if box.lane in (lane, None)}
        while row in taken:
            row += 1
        return row


def _find(values: Mapping[str, _Value], name: str) -> _Value:
    """Return a value by its name in the page, or a part of one (``walk.nodes``)."""
    if name in values:
        return values[name]
    base, _, part = name.rpartition(".")
    value = values[base]
    made = parts_of(value.type)[part]
    return _Value(value.box, f"{value.name}.{part}", made.__name__, made)


def _made(component: Component) -> dict[str, Any]:
    fields = getattr(component.returns, "_fields", None)
    hints: dict[str, Any] = getattr(component.returns, "__annotations__", {})
    return dict(hints) if fields else {"": component.returns}


def _lane(component: Component) -> int:
    """Return an operator's lane: the column its name says, or that of what it makes."""
    kind = component.name.partition(".")[0]
    if kind in LANES:
        return LANES.index(kind)
    return next((_LANE_OF[made.__name__] for made in _made(component).values() if made.__name__ in _LANE_OF), 0)


def _marks(component: Component, wired: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a component borrows, the model last."""
    lent = {port.annotation for port in component.ports if port.annotation in LOANS and port.name not in wired}
    names = [name.removeprefix("the ") for kind, name in LOANS.items() if kind in lent and kind is not ChatModel]
    return (*names, *(["model"] if ChatModel in lent else []))


def _questions(component: Component) -> tuple[str, ...]:
    """Return the ports the question is drawn to."""
    return tuple(port.name for port in component.ports if port.annotation is Questions)


def _changed(component: Component, settings: Mapping[str, Any], apart: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the settings that are not what the component's signature says."""
    return tuple(_spelled(settings, component, apart))


def _spelled(settings: Mapping[str, Any], component: Component, apart: tuple[str, ...]) -> Iterator[str]:
    for name, value in settings.items():
        known = component.settings.get(name)
        if name not in apart and (known is None or value != known.default):
            shown = (
                {None: "none", True: "yes", False: "no"}.get(value, value) if isinstance(value, bool | None) else value
            )
            yield f"{name} {shown}"


def _cut(plan: Plan) -> list[str]:
    return [f"the window cuts first: {', '.join(plan.cut)}"] if len(plan.cut) > 1 else []
