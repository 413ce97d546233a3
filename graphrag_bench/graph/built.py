"""What a builder may return beside a bare graph: what it did, and what it could not do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_bench.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Built:
    """A graph with the account of its making.

    Attributes:
        graph: the graph.
        facts: what to record with the artifact; plain values that JSON can hold. ``failed`` counts failures by kind.
        failed: the subject of each model call that gave nothing (as the ledger books it), and ``kind: message``.
    """

    graph: Graph
    facts: Mapping[str, Any]
    failed: Mapping[str, str] = field(default_factory=dict)
