"""Exact: the nodes whose names are the question's entities, and the entities that name none (KAG)."""

from dataclasses import replace
from typing import NamedTuple

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator


class Exact(NamedTuple):
    """The nodes named, and the questions with the entities that are left."""

    nodes: Nodes
    rest: Questions


@operator("node.exact", needs=("node.name",))
def exact(graph: Graph, questions: Questions) -> Exact:
    """Take the nodes that an entity of the question names, up to case and punctuation; each scores 1.

    What is left of the entities is another wording of the questions, which `node.link` may look up by similarity.

    Args:
        graph: the graph.
        questions: the batch, with entities.
    """
    by_name: dict[str, list[int]] = graph.__dict__.setdefault("_by_name", {})
    if not by_name:
        for node, name in enumerate(graph.column("nodes", "name")):
            by_name.setdefault(phrase_key(name), []).append(node)
    rows, rest = [], []
    for entities in questions.read("entities"):
        keys = {name: key for name in entities if (key := phrase_key(name)) in by_name}
        nodes = [node for key in keys.values() for node in by_name[key]]
        rows.append((nodes, [1.0] * len(nodes)))
        rest.append(tuple(name for name in entities if name not in keys))
    return Exact(Nodes.of_rows(rows), replace(questions, entities=tuple(rest)))
