"""Compositions: every method that the types of a pool of operators allow, each as a method's page.

A composition is a set of steps without circles that ends in one ranking. It is found backwards, from the operator that
makes this ranking: each wire of a step is fed by operators of the pool that return its type, until nothing is left to be
fed. So every step is read, and no composition comes twice. What is allowed is read off the signatures; nothing here knows
an operator by name.

* Each operator stands in a composition once. Operators that ask a model take no part.
* A wire that may stay empty is tried both ways; but an operator whose wires are all optional gets at least one.
* A wire may be fed by the union of several values where ``joins`` says so. Of an operator that says that two ports are
  ``symmetric``, one order is taken.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any, Literal

from graphrag_bench.config.schema import filled, settings_faults
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.composition_names import Node, Variant, Wires, expression, slug, wired
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.wiring import READ_BY
from graphrag_bench.registry import REGISTRY, REQUIRED, Component, Port, Setting, nearest

INTO: dict[str, type] = {
    "chunks": Chunks, "nodes": Nodes, "relationships": Relationships, "communities": Communities,
}  # fmt: skip
_FIELDS = {
    name: Setting(name, kind, default)
    for name, kind, default in (
        ("into", Literal["chunks", "nodes", "relationships", "communities"], "chunks"),
        ("pool", list[str], REQUIRED),
        ("depth", int, REQUIRED),
        ("joins", dict[str, int], {}),
        ("variants", dict[str, list[dict[str, Any]]], {}),
        ("method", dict[str, Any], {}),
        ("most", int | None, None),
    )
}
Page = dict[str, Any]
Steps = Mapping[str, Node | None]  # None: taken in, and not fed yet


@dataclass(frozen=True)
class Space:
    """What compositions are made of.

    Attributes:
        into: the kind of element they rank: chunks, nodes, relationships or communities.
        pool: names of operators.
        depth: steps at most.
        joins: for each operator how many values may be united in one of its wires, at most; 1 where nothing is said.
        variants: for each operator the settings it is tried with; a port set to null stays empty.
        method: what every page has beside its steps: top_k, requires, question (the converters there are to choose from).
    """

    into: str
    pool: tuple[str, ...]
    depth: int
    joins: Mapping[str, int] = field(default_factory=dict)
    variants: Mapping[str, Sequence[Variant]] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)


def compositions(space: Space) -> list[Page]:
    """Return a method's page for each composition, by number of steps and then by name.

    Raises:
        UserError: an operator is not there or asks a model, or two compositions would have one name.
    """
    pages: dict[str, tuple[int, Page]] = {}
    search = _Search(space)
    for last, steps in search.all():
        name = expression(search.pool, steps, last)
        if name in pages:
            raise UserError(
                f"Two compositions read {name!r}.", "Give the operators variants that differ in what they set."
            )
        pages[name] = len(steps), search.page(name, last, steps)
    return [page for _, (_, page) in sorted(pages.items(), key=lambda item: (item[1][0], item[0]))]


def choose(spec: Any, where: str) -> tuple[dict[str, Page], int]:
    """Return the compositions that an experiment's page asks for, each under a name for its folder, and how many it leaves out.

    Args:
        spec: the page's ``compose``: the fields of a space, and ``most``, the number of compositions to keep.
        where: where it stands.

    Raises:
        UserError: what is wrong with it.
    """
    if not isinstance(spec, Mapping):
        raise UserError(
            "compose says what compositions are made of.", "Write compose: {into: chunks, pool: […], depth: 4}."
        )
    if faults := settings_faults(spec, _FIELDS, lambda *_: where, (), "compose"):
        raise Faults("The experiment cannot be composed; nothing was run.", faults)
    values = filled(spec, _FIELDS)
    most = values.pop("most")
    space = Space(**values | {"pool": tuple(values["pool"])})
    if most is not None and most < 1:
        raise UserError(f"compose wants most to be at least 1, and found {most}.", "Write most: 100, or null for all.")
    found = compositions(space)
    if not found:
        raise UserError("No composition of this pool and depth ends as asked.", "Add operators, or raise the depth.")
    kept = found[:most]
    return {slug(page["name"]): page for page in kept}, len(found) - len(kept)


class _Search:
    def __init__(self, space: Space) -> None:
        self.space = space
        self.pool = {name: _usable(name) for name in sorted(set(space.pool))}
        for field_, about in (("variants", space.variants), ("joins", space.joins)):
            for name in sorted(about.keys() - self.pool.keys()):
                raise UserError(f"{field_} names {name}, which is not in the pool.", nearest(name, self.pool))

    def all(self) -> Iterator[tuple[str, dict[str, Node]]]:
        """Yield every composition: the operator it ends in, and its steps."""
        for name, component in self.pool.items():
            if component.returns is INTO[self.space.into]:
                yield from ((name, found) for found in self._fed({name: None}))

    def _fed(self, steps: Steps) -> Iterator[dict[str, Node]]:
        """Yield every way to feed what is not fed yet."""
        waiting = next((name for name, node in steps.items() if node is None), None)
        if waiting is None:
            yield {name: node for name, node in steps.items() if node is not None}
            return
        for variant in self.space.variants.get(waiting) or [{}]:
            for wires in self._wirings(self.pool[waiting], variant, steps):
                feeding = dict.fromkeys(name for names in wires.values() for name in names)
                grown = {**feeding, **steps, waiting: Node(variant, wires)}  # what feeds comes in where it is new
                if len(grown) <= self.space.depth:
                    yield from self._fed(grown)

    def _wirings(self, component: Component, variant: Variant, steps: Steps) -> Iterator[Wires]:
        ports = wired(component)
        symmetric = component.extra.get("symmetric", ())
        for chosen in product(*(self._feeders(component.name, port, variant, steps) for port in ports)):
            wires = dict(zip((port.name for port in ports), chosen, strict=True))
            twins = [wires[name] for name in symmetric]
            if (not ports or any(chosen)) and all(one < two for one, two in pairwise(twins)):
                yield wires

    def _feeders(self, reader: str, port: Port, variant: Variant, steps: Steps) -> Iterator[tuple[str, ...]]:
        if port.optional:
            yield ()
            if port.name in variant:
                return
        fitting = [
            name for name, component in self.pool.items()
            if component.returns is port.annotation and not _reads(steps, name, reader)
        ]  # fmt: skip
        for count in range(1, self.space.joins.get(reader, 1) + 1):
            yield from combinations(fitting, count)

    def page(self, name: str, last: str, steps: Mapping[str, Node]) -> Page:
        """Return a composition as a method's page."""
        read: dict[str, None] = {}
        retrieve: Page = {}
        for step in _ordered(steps, last):
            component, node = self.pool[step], steps[step]
            wires = {port: _feed([_key(one) for one in fed]) for port, fed in node.wires.items()}
            depth = {"top_k": "${retrieval_depth}"} if step == last and "top_k" in component.settings else {}
            retrieve[_key(step)] = {"operator": step, **depth, **node.variant, **wires}
            if by := component.settings.get("by"):
                read[READ_BY.get(str(node.variant.get("by", by.default)), "")] = None
        method = dict(self.space.method)
        question = {key: value for key, value in (method.pop("question", None) or {}).items() if key in read}
        section = {"from": _key(last)} | ({"top_k": "${method.top_k}"} if method.get("top_k") else {})
        asked = {"question": question} if question else {}
        return {"name": name, **method, **asked, "retrieve": retrieve, "context": {self.space.into: section}}


def _usable(name: str) -> Component:
    component = REGISTRY.get("operator", name)
    if any(port.annotation is ChatModel for port in component.ports):
        raise UserError(
            f"The operator {name} asks a model, and compositions are of operators that ask none.", "Leave it out."
        )
    return component


def _reads(steps: Steps, reader: str, source: str) -> bool:
    """Say whether a step is, or reads by way of others, a source."""
    if reader == source:
        return True
    node = steps.get(reader)
    return node is not None and any(_reads(steps, one, source) for fed in node.wires.values() for one in fed)


def _ordered(steps: Mapping[str, Node], last: str) -> list[str]:
    """Return the steps so that each stands behind those that feed it."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        for fed in steps[name].wires.values():
            for one in fed:
                visit(one)
        found.setdefault(name)

    visit(last)
    return list(found)


def _key(operator: str) -> str:
    """Return a step's name in the page: a dot would name a part of a value."""
    return operator.replace(".", "_")


def _feed(names: list[str]) -> str | list[str] | None:
    return None if not names else names[0] if len(names) == 1 else names
