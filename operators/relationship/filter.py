"""Filter over relationships: the model keeps the facts that help (HippoRAG 2's recognition memory)."""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.rows import NOTHING, stack
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships, Row
from graphrag_bench.registry import operator
from operators._asking import (
    STAGE,
    ask_rows,
    bullets,
    listed,
    object_of,
    prompts,
    reckoned,
    room,
    rows_to_do,
    triple_text,
    turns,
)


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question, or none."""
    if settings["filter"] == "none":
        return Calls()
    shown = min(scale.inputs["relationships"], settings["top_k"]) * scale.fact_tokens
    return reckoned("facts", scale, settings, 1, shown, shown / 2)


@operator(
    "relationship.filter",
    needs=("node.name", "relationship.name|relationship.description"),
    prompts=prompts("facts"),
    calls=calls,
)
async def keep(
    graph: Graph,
    questions: Questions,
    model: ChatModel,
    relationships: Relationships,
    *,
    filter: Literal["model", "none"] = "model",
    top_k: int = 5,
    max_tokens: int = 256,
) -> Relationships:
    """Ask which of the best facts help to answer the question, and keep these, as they are scored: one call a question.

    The model may keep none of them. A question without a fact is not asked; one whose reply cannot be read has failed.

    Args:
        graph: names the facts.
        questions: the batch.
        model: who is asked.
        relationships: the facts; what the window cannot hold is left out, the last first.
        filter: by the model, or ``none``: the best are kept unasked.
        top_k: facts that are looked at.
        max_tokens: room for a reply.
    """
    if filter == "none":
        return relationships.top(top_k)
    calls: list[tuple[int, Request]] = []
    offered: list[dict[str, list[int]]] = []
    for row in rows_to_do(len(questions), questions, relationships):
        of: dict[str, list[int]] = {}  # two relationships may read alike
        for at, fact in enumerate(relationships.row(row).ids[:top_k].tolist()):
            of.setdefault(triple_text(graph, fact), []).append(at)
        if of:
            question = f"Question: {questions.texts[row]}"
            left = room(model, turns("facts", "Facts:\n", question), max_tokens)
            lines = listed(list(of), left, model)
            asked = turns("facts", bullets("Facts", lines), question)
            kept = {"type": "array", "maxItems": len(lines), "items": {"type": "string", "enum": lines}}
            calls.append((row, Request(asked, max_tokens, STAGE, "facts", questions.ids[row], object_of(facts=kept))))
            offered.append(of)
    replies, failed = await ask_rows(model, calls)
    rows = [NOTHING] * len(questions)
    for (row, _), reply, of in zip(calls, replies, offered, strict=True):
        if not reply.failure:
            kept_at = sorted(place for text in dict.fromkeys(reply.data["facts"]) for place in of[text])
            found = relationships.row(row)
            rows[row] = Row(found.ids[kept_at], found.scores[kept_at])
    kept_rows = stack(Relationships, rows)
    kept_rows.failed = failed
    return kept_rows
