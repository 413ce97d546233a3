"""What the agents of a walk choose from: the relations of an entity, and the ends they lead to."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import incident
from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Reach

Relation = tuple[int, str]  # a direction and what its relationships say
Origin = tuple[int, str, int]  # an entity, and the words and direction of a relation; "" and 0 stand for every relation


def relations_at(
    graph: Graph, node: int, allowed: NDArray[np.int64] | None, back: Iterable[Relation] = (), most: int | None = None
) -> dict[Relation, list[int]]:
    """Return the relations of a node with their relationships: outgoing first, each part by the alphabet.

    Args:
        graph: the graph.
        node: whose relations.
        allowed: the relationships that count, every fact if None; loops never do.
        back: relations to leave out.
        most: keep so many, of the greatest summed weight.
    """
    found: dict[Relation, list[int]] = defaultdict(list)
    for direction, fact in steps_at(graph, node, allowed):
        found[direction, graph.label(fact)].append(fact)
    left = found.keys() - set(back)
    heaviest = sorted(left, key=lambda relation: (-graph.weights[found[relation]].sum(), *_place(relation)))
    return {relation: found[relation] for relation in sorted(heaviest[:most], key=_place)}


def steps_at(graph: Graph, node: int, allowed: NDArray[np.int64] | None) -> list[tuple[int, int]]:
    """Return (direction, relationship) of the allowed relationships, or of all facts, that lead from a node to another."""
    if allowed is None:
        touching = incident(graph)
        allowed = touching.relationships[touching.indptr[node] : touching.indptr[node + 1]]
    sources, targets = graph.sources[allowed], graph.targets[allowed]
    return [
        (direction, fact)
        for direction, here, there in ((FORWARD, sources, targets), (BACKWARD, targets, sources))
        for fact in allowed[(here == node) & (there != node)].tolist()
    ]


def _place(relation: Relation) -> tuple[int, str, str]:
    return -relation[0], relation[1].casefold(), relation[1]


def relation_text(relation: Relation, end: str = "?") -> str:
    """Return a relation of an entity as text, with what it leads to."""
    return f"{relation[1]} {end}" if relation[0] == FORWARD else f"{end} {relation[1]}"


def back_relations(graph: Graph, items: Iterable[Reach]) -> dict[int, set[Relation]]:
    """Return the nodes of a frontier in its order, each with the relations that would lead back where it was reached from."""
    came: dict[int, set[Relation]] = {}
    for item in items:
        back = came.setdefault(item.node, set())
        if item.relationship >= 0:
            back.add((-item.direction, graph.label(item.relationship)))
    return came


def ends_of(graph: Graph, items: Sequence[Reach], allowed: set[int] | None) -> dict[Origin, list[Reach]]:
    """Return what chosen items lead to, by entity and relation and there by rising relationship.

    An end stands once under a named relation. An item without a relationship leads along every fact of its node, all under
    one origin.

    Args:
        graph: the graph.
        items: chosen, not yet walked.
        allowed: the nodes that may be reached; None for any.
    """
    found: dict[Origin, dict[int, Reach]] = defaultdict(dict)
    open_at: Mapping[int, float] = {item.node: item.score for item in items if item.relationship < 0}
    walks = [item for item in items if item.node not in open_at]
    for node, score in open_at.items():
        walks += [Reach(node, fact, direction, score) for direction, fact in steps_at(graph, node, None)]
    for item in sorted(walks, key=lambda item: (item.node, item.relationship, item.direction)):
        end = int((graph.targets if item.direction == FORWARD else graph.sources)[item.relationship])
        if end != item.node and (allowed is None or end in allowed):
            if item.node in open_at:
                found[item.node, "", 0][item.relationship] = item._replace(node=end)
            else:
                named = found[item.node, graph.label(item.relationship), item.direction]
                named.setdefault(end, item._replace(node=end))
    return {origin: list(ends.values()) for origin, ends in found.items()}


def drawn(ends: Sequence[Reach], sample: int, salt: str) -> list[Reach]:
    """Return ``sample`` of the ends in their order, drawn by what ``salt`` says, whatever else is drawn beside."""
    seed = int.from_bytes(hashlib.sha256(salt.encode("utf-8", "replace")).digest()[:8], "big")
    chosen = np.random.default_rng(seed).choice(len(ends), min(sample, len(ends)), replace=False)
    return [ends[at] for at in np.sort(chosen).tolist()]
