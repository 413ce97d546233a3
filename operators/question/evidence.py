"""Evidence: which evidence is wanted next, asked at each passage found so far (KGP)."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.llm.window import cut_to_window
from graphrag_bench.pipeline.texts import Questions, Text, Texts
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator
from operators._asking import STAGE, ask_rows, prompts, reckoned, room, rows_to_do, turns


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a passage."""
    return reckoned("evidence", scale, settings, passages(settings, scale), scale.node_tokens, 20)


def passages(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return at how many passages a question is asked, at most."""
    return min(scale.inputs["nodes"], int(settings["top_k"]))


@operator("question.evidence", needs=("node.text",), prompts=prompts("evidence"), calls=calls, yields=passages)
async def evidence(
    graph: Graph, questions: Questions, model: ChatModel, nodes: Nodes, *, max_tokens: int = 64, top_k: int = 10
) -> Texts:
    """Ask at each passage which evidence is needed next: one call a passage, one text anchored there.

    KGP's model is trained to write the next supporting passage; here an instruction does it. At a passage whose reply is
    lost the question itself is looked for; a question all of whose replies are lost has failed.

    Args:
        graph: the passages' texts; one that the window cannot hold is cut at a word.
        questions: the batch.
        model: who is asked.
        nodes: the passages found so far.
        max_tokens: room for a reply.
        top_k: passages a question, the best.
    """
    texts = graph.column("nodes", "text")
    calls: list[tuple[int, Request]] = []
    anchors: list[int] = []
    for row in rows_to_do(len(questions), questions, nodes):
        question = f"Question: {questions.texts[row]}"
        left = room(model, turns("evidence", "Passage:\n", question), max_tokens)
        for node in nodes.row(row).ids[:top_k].tolist():
            asked = turns("evidence", f"Passage:\n{cut_to_window(texts[node], left, model.count)}", question)
            calls.append((row, Request(asked, max_tokens, STAGE, "evidence", questions.ids[row])))
            anchors.append(node)
    replies, failed = await ask_rows(model, calls)
    rows: list[list[Text]] = [[] for _ in range(len(questions))]
    for (row, _), reply, anchor in zip(calls, replies, anchors, strict=True):
        if row not in failed:
            rows[row].append(Text(questions.texts[row] if reply.failure else " ".join(reply.text.split()), anchor))
    return Texts([tuple(row) for row in rows], failed)
