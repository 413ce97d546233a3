"""AgentPath: the model keeps the paths that help, the most helpful first (DALK's self-aware re-ranking)."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.walks import Path, Subgraphs
from graphrag_bench.registry import operator
from operators._asking import (
    STAGE,
    ask_rows,
    bullets,
    listed,
    object_of,
    path_text,
    prompts,
    reckoned,
    room,
    rows_to_do,
    turns,
)


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question; a path has two relationships or so."""
    most = settings["max_paths"]
    shown, reply = (2 * count * scale.fact_tokens for count in (scale.inputs["paths"], most))
    return reckoned("paths", scale, settings, 1, shown, reply, most=str(most))


@operator("subgraph.agent_path", needs=("node.name",), prompts=prompts("paths"), calls=calls)
async def agent_path(
    graph: Graph, questions: Questions, model: ChatModel, paths: Subgraphs, *, max_paths: int = 5, max_tokens: int = 384
) -> Subgraphs:
    """Ask which paths help to answer the question: one call a question; the rest are dropped.

    The paths kept score 1, 1/2, 1/3, … in the model's order. Where it names none, none is kept. A path without a
    relationship states nothing and is dropped unasked. A question whose reply cannot be read has failed.

    Args:
        graph: names the facts.
        questions: the batch.
        model: who is asked.
        paths: what to choose from, the best first; what the window cannot hold is left out from the end.
        max_paths: paths kept at most.
        max_tokens: room for a reply.
    """
    calls: list[tuple[int, Request]] = []
    offered: list[dict[str, Path]] = []
    for row in rows_to_do(len(questions), questions, paths):
        of: dict[str, Path] = {}
        for path in paths.row(row):
            if path.relationships:
                of.setdefault(path_text(graph, path), path)
        if of:
            question, most = f"Question: {questions.texts[row]}", str(max_paths)
            left = room(model, turns("paths", "Chains:\n", question, most=most), max_tokens)
            lines = listed(list(of), left, model)
            asked = turns("paths", bullets("Chains", lines), question, most=most)
            chains = {"type": "array", "maxItems": max_paths, "items": {"type": "string", "enum": lines}}
            schema = object_of(chains=chains)
            calls.append((row, Request(asked, max_tokens, STAGE, "paths", questions.ids[row], schema)))
            offered.append(of)
    replies, failed = await ask_rows(model, calls)
    rows: list[list[Path]] = [[] for _ in range(len(questions))]
    for (row, _), reply, of in zip(calls, replies, offered, strict=True):
        kept = () if reply.failure else dict.fromkeys(reply.data["chains"])
        rows[row] = [of[text]._replace(score=1.0 / rank) for rank, text in enumerate(kept, 1)]
    return Subgraphs(rows, failed)
