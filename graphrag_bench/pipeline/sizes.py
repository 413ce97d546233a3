"""How many elements each step of a plan gives a question at most, and how many calls the steps that ask make with them.

No operator is known by name. What one gives is what it registers as ``yields`` (a function of its settings and a Scale);
otherwise its ``top_k``, ``width`` or ``max_paths``; otherwise the most that is wired to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.method import Loop, Plan, Section, Step
from graphrag_bench.pipeline.texts import Texts
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import Subgraphs
from graphrag_bench.registry import Component

_BOUNDS = ("top_k", "width", "max_paths")
_UNKNOWN = 20  # elements of a step that says nothing and is fed nothing
_PROMPT, _REPLY = 300, 100  # tokens of a call of a component that says nothing of its calls
_PATH_FACTS = 3


class Sizes:
    """The sizes of a plan's values, walked through in the order of its steps, every loop to its last round.

    Attributes:
        asked: what the operators ask, all questions together.
        silent: the components that ask and say nothing of their calls.
        guessed: steps whose size hangs on a graph that is not there yet.
    """

    def __init__(self, plan: Plan, scale: Scale) -> None:
        self._scale = scale
        self._sizes: dict[str, int] = {}
        self.asked = Calls()
        self.silent: dict[str, None] = {}
        self.guessed: set[str] = set()
        self._run(plan.steps, self._sizes)

    def of(self, name: str) -> int:
        """Return the elements of a value, or of a part of one, for one question at most."""
        return _look_up(self._sizes, name)

    def _run(self, steps: Sequence[Step | Loop], sizes: dict[str, int]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                self._loop(step, sizes)
                continue
            inputs = {port: sum(_look_up(sizes, name) for name in names) for port, names in step.wires.items()}
            scale = replace(self._scale, inputs=inputs)
            sizes[step.name] = _yields(step, scale)
            larger = replace(
                scale,
                nodes=2 * scale.nodes,
                relationships=3 * scale.relationships,
                communities=2 * scale.communities,
                up_to=tuple(2 * count for count in scale.up_to),
                at=tuple(2 * count for count in scale.at),
            )
            if not scale.measured and _yields(step, larger) != sizes[step.name]:
                self.guessed.add(step.name)
            if any(port.annotation is ChatModel for port in step.component.ports):
                found = calls_of(step.component, step.settings, scale, scale.questions)
                # how often a question is asked hangs on what is retrieved for it
                self.asked += found.as_uncertain_as("at most")
                self.silent |= {} if "calls" in step.component.extra else {step.component.name: None}

    def _loop(self, loop: Loop, sizes: dict[str, int]) -> None:
        carried = {inner: _look_up(sizes, outer) for inner, outer in loop.carry.items()}
        most: dict[str, int] = {}
        for _ in range(loop.rounds):
            local = {**sizes, **carried}
            self._run(loop.steps, local)
            made = {name: size for name, size in local.items() if name not in sizes or name in carried}
            carried = {name: made[name] for name in carried}
            for name, size in made.items():
                most[name] = most.get(name, 0) + size if loop.collect == "union" else max(most.get(name, 0), size)
        sizes.update({f"{loop.name}.{name}": size for name, size in most.items()})


def calls_of(component: Component, settings: Mapping[str, Any], scale: Scale, units: int) -> Calls:
    """Return what a component that asks says of its calls; where it says nothing, one call a unit of a usual size."""
    said: Callable[[Mapping[str, Any], Scale], Calls] | None = component.extra.get("calls")
    if said is not None:
        return said(settings, scale)
    return Calls.each(units, _PROMPT, _REPLY, "about")


def context_of(sections: Sequence[Section], sizes: Sizes, scale: Scale, room: int | None) -> tuple[int, int]:
    """Return the elements and tokens of one question's context, at most.

    Args:
        sections: what it shows.
        sizes: of the values it shows.
        scale: says how long an element is.
        room: tokens that the window leaves; None where the generator packs the elements itself.
    """
    items = tokens = 0
    for section in sections:
        shown = sum(sizes.of(source) for source in section.sources)
        shown = min(shown, section.top_k) if section.top_k is not None else shown
        length = round(shown * _length(section.kind, scale))
        items += shown
        tokens += length if section.tokens is None else min(length, section.tokens)
    return items, tokens if room is None else min(tokens, max(room, 0))


def _length(kind: type, scale: Scale) -> float:
    """Return the tokens of one element that a context shows."""
    lengths = {
        Chunks: scale.chunk,
        Nodes: scale.node_tokens,
        Relationships: scale.fact_tokens,
        Communities: scale.report_tokens,
        Subgraphs: _PATH_FACTS * scale.fact_tokens,
        Texts: scale.question,
    }
    return lengths[kind]


def _yields(step: Step, scale: Scale) -> int:
    said: Callable[[Mapping[str, Any], Scale], int] | None = step.component.extra.get("yields")
    if said is not None:
        size = said(step.settings, scale)
    else:
        bounds = [step.settings[name] for name in _BOUNDS if isinstance(step.settings.get(name), int)]
        each = scale.mentions if step.settings.get("by") == "entities" else 1  # what is looked up a mention
        size = bounds[0] * each if bounds else max(scale.inputs.values(), default=_UNKNOWN)
    there: dict[Any, int] = {Chunks: scale.chunks}
    if scale.measured:
        there |= {Nodes: scale.nodes, Communities: scale.communities}
    return min(size, there.get(step.component.returns, size))


def _look_up(sizes: Mapping[str, int], name: str) -> int:
    while name not in sizes and "." in name:
        name = name.rpartition(".")[0]
    return sizes.get(name, 0)
