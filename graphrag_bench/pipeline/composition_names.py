"""What compositions of operators are called: one line for a reader, and a name that a folder can have."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_bench.pipeline.loans import LOANS
from graphrag_bench.registry import Component, Port
from graphrag_bench.store.artifacts import digest

Wires = Mapping[str, tuple[str, ...]]  # port -> the operators that feed it; () = left empty
Variant = Mapping[str, Any]
_LONGEST = 60  # letters of a folder's name, the hash apart


@dataclass(frozen=True)
class Node:
    """One operator of a composition: its settings, and which operators feed it."""

    variant: Variant
    wires: Wires


def wired(component: Component) -> list[Port]:
    """Return the ports that steps feed; what the run lends is no wire."""
    return [port for port in component.ports if port.annotation not in LOANS]


def expression(pool: Mapping[str, Component], steps: Mapping[str, Node], name: str) -> str:
    """Return a composition as one line, from what it begins with to the step ``name``.

    ``node.link + node.vdb > node.ppr(0.5)``: the union of two values feeds one wire; ``[chunk.bm25; chunk.vdb] > chunk.fuse``:
    two wires, in the order of the signature.
    """
    fed = {
        port.name: " + ".join(_bracketed(expression(pool, steps, one), len(names)) for one in names)
        for port in wired(pool[name])
        if (names := steps[name].wires[port.name])
    }
    label = name.replace("relationship.", "rel.") + _settings(steps[name].variant)
    if not fed:
        return label
    kinds = [port.annotation for port in wired(pool[name])]
    if len(fed) == len(kinds) or len(set(kinds)) == len(kinds):
        parts = list(fed.values())
    else:  # two ports of one type, and one of them empty
        parts = [f"{port}: {text}" for port, text in fed.items()]
    return f"{parts[0]} > {label}" if len(parts) == 1 else f"[{'; '.join(parts)}] > {label}"


def _bracketed(expression: str, among: int) -> str:
    return f"({expression})" if among > 1 and " > " in expression else expression


def _settings(variant: Variant) -> str:
    """Return what a variant sets: the value where it sets one thing, values with their names where it sets several."""
    said = {name: value for name, value in variant.items() if value is not None}
    parts = [
        (name if value else f"not {name}")
        if isinstance(value, bool)
        else f"{name} {value}"
        if len(said) > 1
        else str(value)
        for name, value in said.items()
    ]
    return f"({', '.join(parts)})" if parts else ""


def slug(name: str) -> str:
    """Return a short name that a folder can have; the hash keeps two that read alike apart."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return f"{plain[:_LONGEST].strip('-.')}_{digest(name)[:8]}"
