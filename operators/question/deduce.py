"""Deduce: the answer of a step, from what was found for it (KAG)."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.texts import Questions, Text, Texts, Truths
from graphrag_bench.pipeline.values import Chunks, Relationships
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
from operators._steps import UNKNOWN, note

_SCHEMA = object_of(answer={"type": "string", "minLength": 1, "maxLength": 160})


class Deduced(NamedTuple):
    """The notes with one more, and whether every step has one."""

    notes: Texts
    done: Truths


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question, or none."""
    if settings["solver"] == "none":
        return Calls()
    shown = min(scale.inputs["chunks"], settings["top_k"]) * scale.chunk
    shown += scale.inputs.get("relationships", 0) * scale.fact_tokens
    return reckoned("deduce", scale, settings, 1, shown, 12)


@operator(
    "question.deduce", needs=("node.name",), prompts=prompts("deduce"), calls=calls,
    yields=lambda settings, scale: scale.inputs["steps"],
)  # fmt: skip
async def deduce(
    graph: Graph,
    questions: Questions,
    model: ChatModel,
    table: ChunkTable,
    steps: Texts,
    notes: Texts,
    chunks: Chunks,
    relationships: Relationships | None = None,
    *,
    solver: Literal["model", "none"] = "model",
    top_k: int = 4,
    max_tokens: int = 64,
) -> Deduced:
    """Answer the open step of each question from its facts and chunks, and note it: one call a question.

    A step that what was found does not answer is noted as unknown, unasked where nothing was found. A question whose reply
    cannot be read has failed; one without an open step is left as it is.

    Args:
        graph: names the facts.
        questions: the steps' wording, as `question.step` makes it.
        model: who answers.
        table: the chunks' texts; what the window cannot hold is left out, the last chunk first.
        steps: the steps of each question.
        notes: what was found in the steps before.
        chunks: what was found for this one.
        relationships: facts found for it, if any.
        solver: the model, or ``none``: every step is noted as unknown.
        top_k: chunks shown.
        max_tokens: room for a reply.
    """
    calls: list[tuple[int, Request]] = []
    said: dict[int, str] = {}
    for row in rows_to_do(len(questions), questions, steps, notes, chunks, relationships):
        if len(notes.row(row)) >= len(steps.row(row)):
            continue
        said[row] = UNKNOWN
        ids = chunks.row(row).ids[:top_k].tolist()
        facts = [] if relationships is None else relationships.row(row).ids.tolist()
        if solver == "none" or not (ids or facts):
            continue
        question = f"Question: {questions.texts[row]}"
        known = bullets("Facts", [triple_text(graph, fact) for fact in facts]) if facts else ""
        left = room(model, turns("deduce", known, "Passages:\n", question), max_tokens)
        passages = bullets("Passages", listed([table[chunk].text for chunk in ids], left, model)) if ids else ""
        asked = turns("deduce", known, passages, question)
        calls.append((row, Request(asked, max_tokens, STAGE, "deduce", questions.ids[row], _SCHEMA)))
    replies, failed = await ask_rows(model, calls)
    for (row, _), reply in zip(calls, replies, strict=True):
        said[row] = UNKNOWN if reply.failure else reply.data["answer"]
    rows: list[tuple[Text, ...]] = [
        (*before, note(len(before) + 1, questions.texts[row], said[row])) if row in said else tuple(before)
        for row, before in enumerate(notes)
    ]
    done = [len(found) >= len(planned) for found, planned in zip(rows, steps, strict=True)]
    return Deduced(Texts(rows, failed), Truths(done, failed))
