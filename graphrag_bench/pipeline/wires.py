"""The types a wire of a method's page can carry."""

from typing import Any

from graphrag_bench.pipeline.texts import Texts, Truths
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import Frontier, Subgraphs

RANKINGS: tuple[type, ...] = (Nodes, Relationships, Chunks, Communities)
ASKED = "questions"  # the name of the batch itself among the values
WIRES: tuple[type, ...] = (*RANKINGS, Subgraphs, Frontier, Texts, Truths)


def parts_of(kind: type) -> dict[str, type]:
    """Return the parts of a value that pages may name with a dot (``walk.nodes``), by their types."""
    parts: dict[str, tuple[type, Any]] = getattr(kind, "parts", {})
    return {name: made for name, (made, _) in parts.items()}


def part(value: Any, name: str) -> Any:
    """Return one part of a value."""
    return type(value).parts[name][1](value)
