"""Enough: whether the facts found so far answer the question (ToG)."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.texts import Questions, Truths
from graphrag_bench.pipeline.walks import Subgraphs
from graphrag_bench.registry import operator
from operators._asking import (
    STAGE,
    ask_rows,
    bullets,
    facts_text,
    listed,
    object_of,
    prompts,
    reckoned,
    room,
    rows_to_do,
    turns,
)

_SCHEMA = object_of(enough={"enum": ["yes", "no"]})


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question."""
    return reckoned("enough", scale, settings, 1, scale.inputs["paths"] * scale.fact_tokens, 8)


@operator("question.enough", needs=("node.name",), prompts=prompts("enough"), calls=calls)
async def enough(
    graph: Graph, questions: Questions, model: ChatModel, paths: Subgraphs, *, max_tokens: int = 16
) -> Truths:
    """Ask whether the facts on the paths answer the question: one call a question.

    A question without a fact counts as having enough: there is nothing more to find from where its walk stands (ToG's
    "half stop"). A question whose reply cannot be read has failed.

    Args:
        graph: names the facts.
        questions: the batch.
        model: who is asked.
        paths: the facts found so far, the best paths first; what the window cannot hold is left out from the end.
        max_tokens: room for a reply.
    """
    calls: list[tuple[int, Request]] = []
    for row in rows_to_do(len(questions), questions, paths):
        if facts := facts_text(graph, paths.row(row)):
            question = f"Question: {questions.texts[row]}"
            left = room(model, turns("enough", "Facts:\n", question), max_tokens)
            asked = turns("enough", bullets("Facts", listed(facts, left, model)), question)
            calls.append((row, Request(asked, max_tokens, STAGE, "enough", questions.ids[row], _SCHEMA)))
    replies, failed = await ask_rows(model, calls)
    rows = [True] * len(questions)
    for (row, _), reply in zip(calls, replies, strict=True):
        rows[row] = reply.failure is None and reply.data["enough"] == "yes"
    return Truths(rows, failed)
