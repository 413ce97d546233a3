"""Thought: the next step of reasoning over what was retrieved, as a new query (IRCoT)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.mentions import mentions
from graphrag_bench.pipeline.texts import Questions, Truths
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator
from operators._asking import STAGE, ask_rows, bullets, listed, prompts, reckoned, room, rows_to_do, turns

_MARKER = "the answer is"  # IRCoT's own sign of the last thought, in any case


class Thought(NamedTuple):
    """The next query of each question, and whether it is answered."""

    questions: Questions
    done: Truths


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question."""
    shown = min(scale.inputs["chunks"], settings["top_k"]) * scale.chunk
    return reckoned("thought", scale, settings, 1, shown, 40)


@operator("question.thought", prompts=prompts("thought"), calls=calls)
async def thought(
    questions: Questions, model: ChatModel, chunks: Chunks, table: ChunkTable, *, top_k: int = 5, max_tokens: int = 96
) -> Thought:
    """Ask for the next step of reasoning over the best chunks; it becomes the text that is retrieved with next.

    One call a question. The entities of the new text are found by rule (`mentions`). A question is done when its thought
    says "the answer is", as IRCoT's does: asked for yes or no beside the thought, small models say yes at the first step. A
    question without a chunk keeps its text and is done; one whose reply is lost has failed.

    Args:
        questions: the batch, in its own words.
        model: who is asked.
        chunks: what was retrieved so far.
        table: the chunks' texts; what the window cannot hold is left out, the last first.
        top_k: chunks shown.
        max_tokens: room for a reply.
    """
    calls: list[tuple[int, Request]] = []
    for row in rows_to_do(len(questions), questions, chunks):
        if len(ids := chunks.row(row).ids[:top_k].tolist()):
            question = f"Question: {questions.texts[row]}"
            left = room(model, turns("thought", "Passages:\n", question), max_tokens)
            passages = listed([table[chunk].text for chunk in ids], left, model)
            asked = turns("thought", bullets("Passages", passages), question)
            calls.append((row, Request(asked, max_tokens, STAGE, "thought", questions.ids[row])))
    replies, failed = await ask_rows(model, calls)
    texts, done = list(questions.texts), [True] * len(questions)
    for (row, _), reply in zip(calls, replies, strict=True):
        said = " ".join(reply.text.split())
        texts[row] = said or texts[row]
        done[row] = _MARKER in said.casefold()
    following = replace(
        questions,
        texts=tuple(texts),
        entities=tuple(mentions(text) for text in texts),
        low=None,
        high=None,
        failed={**questions.failed, **failed},
    )
    return Thought(following, Truths(done, failed))
