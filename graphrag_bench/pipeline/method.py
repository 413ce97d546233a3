"""A checked method: what is asked of the questions, the steps and loops in order, the context, the generator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_bench.pipeline.loans import GRAPH_LOANS, LOANS
from graphrag_bench.pipeline.texts import Texts
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import Component

Chosen = tuple[Component, Mapping[str, Any]]


@dataclass(frozen=True)
class Step:
    """One operator of a method, wired: ``wires`` maps a port to the names of the values that feed it."""

    name: str
    component: Component
    wires: Mapping[str, tuple[str, ...]]
    join: str
    settings: Mapping[str, Any]

    def line(self) -> str:
        """Return the step as an expression."""
        fed = " | ".join(name for names in self.wires.values() for name in names)
        return f"{self.component.name}({fed})" if fed else self.component.name


@dataclass(frozen=True)
class Loop:
    """Steps that are repeated.

    Attributes:
        name: what it is called; its values are ``name.value`` afterwards.
        rounds: how often at most.
        carry: inner name -> the outer value it begins with (``questions`` is the batch itself); the step of that name, or
            its result where the name has a dot, feeds the next round.
        steps: what a round does.
        until: the step that says which questions are done; they are frozen.
        collect: what its values are afterwards: of each question's last round, or of all its rounds united, with what a
            carried one began with.
    """

    name: str
    rounds: int
    carry: Mapping[str, str]
    steps: "tuple[Step | Loop, ...]"
    until: str | None
    collect: Literal["last", "union"]

    def line(self) -> str:
        """Return the loop as an expression."""
        until = f" until {self.until}" if self.until else ""
        return f"repeat({self.rounds}{until}: {' > '.join(step.line() for step in self.steps)})"


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
    """A checked method. ``cut`` names the context's sections in the order in which they give way to the window."""

    name: str
    converters: tuple[Chosen, ...]
    steps: tuple[Step | Loop, ...]
    sections: tuple[Section, ...]
    cut: tuple[str, ...]
    generator: Chosen | None

    @property
    def operators(self) -> tuple[Step, ...]:
        """Every step, those inside loops too."""
        return tuple(_flat(self.steps))

    @property
    def components(self) -> tuple[Component, ...]:
        """Every component the method uses."""
        used = [component for component, _ in self.converters] + [step.component for step in self.operators]
        return (*used, self.generator[0]) if self.generator else tuple(used)

    @property
    def loans(self) -> set[object]:
        """What the retrieval part borrows: graph, indexes, model."""
        borrowing = [component for component, _ in self.converters] + [step.component for step in self.operators]
        return {port.annotation for component in borrowing for port in component.ports if port.annotation in LOANS}

    @property
    def reads_graph(self) -> bool:
        """Whether anything of a graph is read, by a step or by the context."""
        return bool(self.loans & GRAPH_LOANS or {section.kind for section in self.sections} - {Chunks, Texts})

    def line(self) -> str:
        """Return the resolved chain as one line a person can compare with the paper's row."""
        parts = [component.name for component, _ in self.converters]
        parts += [step.line() for step in self.steps]
        if self.sections:
            parts.append(f"context({', '.join(section.name for section in self.sections)})")
        if self.generator:
            parts.append(self.generator[0].name)
        return " > ".join(parts)


def _flat(steps: tuple[Step | Loop, ...]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Loop):
            yield from _flat(step.steps)
        else:
            yield step
