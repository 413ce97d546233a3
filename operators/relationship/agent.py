"""Agent over relationships: at each entity of a frontier the model chooses which relations to follow (ToG)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import FACT_TOKENS, Calls, Scale
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from graphrag_bench.pipeline.walks import Frontier, Reach
from graphrag_bench.registry import operator
from operators._asking import (
    STAGE,
    ask_rows,
    bullets,
    listed,
    prompts,
    reckoned,
    room,
    rows_to_do,
    scored,
    shares,
    turns,
)
from operators._relations import back_relations, relation_text, relations_at

_SHOWN = 12  # relations of a call


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call an entity of the frontier."""
    shown, width = min(_SHOWN, settings["max_candidates"]) * FACT_TOKENS // 2, settings["width"]
    return reckoned("relations", scale, settings, scale.inputs["frontier"], shown, 15 * width, width=str(width))


@operator(
    "relationship.agent",
    needs=("node.name", "relationship.name|relationship.description"),
    prompts=prompts("relations"),
    calls=calls,
    yields=lambda settings, scale: scale.inputs["frontier"] * settings["width"],
)
async def agent(
    graph: Graph,
    questions: Questions,
    model: ChatModel,
    frontier: Frontier,
    relationships: Relationships | None = None,
    *,
    width: int = 3,
    max_candidates: int = 40,
    max_tokens: int = 128,
) -> Frontier:
    """Choose at each entity of the frontier at most ``width`` relations to follow: one call an entity.

    Relations are told apart by their words and their direction; outgoing ones stand first, each part by the alphabet. The
    relation by which the entity was reached is not offered in the direction back. The model's scores of an entity's
    relations are brought to a sum of 1. An entity with one relation follows it with score 1, unasked; one whose reply
    cannot be read is left where it is, and a question that loses all its replies so has failed.

    Args:
        graph: the graph.
        questions: the batch.
        model: who chooses.
        frontier: where the walks stand.
        relationships: what may be followed; every fact if not wired.
        width: relations an entity.
        max_candidates: relations offered, those of the greatest weight; what the window cannot hold is left out as well.
        max_tokens: room for a reply.

    Returns:
        One item for every relationship of a chosen relation, with the relation's score: not yet walked.
    """
    rows: list[list[Reach]] = [[] for _ in range(len(questions))]
    calls: list[tuple[int, Request]] = []
    offered: list[tuple[int, dict[str, tuple[int, list[int]]]]] = []
    for row in rows_to_do(len(questions), questions, frontier, relationships):
        allowed = None if relationships is None else np.sort(relationships.row(row).ids)
        for node, back in back_relations(graph, frontier.row(row)).items():
            options = relations_at(graph, node, allowed, back, max_candidates)
            if len(options) == 1:
                (((direction, _), facts),) = options.items()
                rows[row] += [Reach(node, fact, direction) for fact in facts]
            elif options:
                of = {relation_text(relation): (relation[0], facts) for relation, facts in options.items()}
                entity, question = f"Entity: {graph.names([node])[0]}", f"Question: {questions.texts[row]}"
                left = room(model, turns("relations", entity, "Relations:\n", question, width=str(width)), max_tokens)
                lines = listed(list(of), left, model)
                asked = turns("relations", entity, bullets("Relations", lines), question, width=str(width))
                schema = scored(lines, width)
                calls.append((row, Request(asked, max_tokens, STAGE, "relations", questions.ids[row], schema)))
                offered.append((node, of))
    replies, failed = await ask_rows(model, calls)
    for (row, _), reply, (node, of) in zip(calls, replies, offered, strict=True):
        for text, share in ({} if reply.failure else shares(reply.data)).items():
            direction, facts = of[text]
            rows[row] += [Reach(node, fact, direction, share) for fact in facts]
    return Frontier(rows, {row: reason for row, reason in failed.items() if not rows[row]})
