"""Plan: the steps in which a question can be answered, each a question of its own (KAG's logical form)."""

from collections.abc import Mapping
from typing import Any, Literal

from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.texts import Questions, Text, Texts
from graphrag_bench.registry import operator
from operators._asking import STAGE, ask_rows, object_of, prompts, reckoned, rows_to_do, turns
from operators._steps import STEP, tidy


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question, or none."""
    if settings["planner"] == "none":
        return Calls()
    most = settings["max_steps"]
    return reckoned("plan", scale, settings, 1, 0, 12 * most, most=str(most))


@operator("question.plan", prompts=prompts("plan"), calls=calls, yields=lambda settings, scale: settings["max_steps"])
async def plan(
    questions: Questions,
    model: ChatModel,
    *,
    planner: Literal["model", "none"] = "model",
    max_steps: int = 4,
    max_tokens: int = 256,
) -> Texts:
    """Split each question into steps that can be looked up one after the other: one call a question.

    A step may name the answer of an earlier one as ``#1``. Where no step has a word of its own, the question is its one step.
    A question whose reply cannot be read has failed.

    Args:
        questions: the batch.
        model: who plans.
        planner: the model, or ``none``: the question itself is the one step.
        max_steps: steps at most.
        max_tokens: room for a reply.
    """
    rows: list[tuple[Text, ...]] = [() for _ in questions.texts]
    todo = rows_to_do(len(questions), questions)
    for row in todo:
        rows[row] = (Text(questions.texts[row]),)
    if planner == "none":
        return Texts(rows)
    schema = object_of(steps={"type": "array", "minItems": 1, "maxItems": max_steps, "items": STEP})
    calls: list[tuple[int, Request]] = []
    for row in todo:
        asked = turns("plan", f"Question: {questions.texts[row]}", most=str(max_steps))
        calls.append((row, Request(asked, max_tokens, STAGE, "plan", questions.ids[row], schema)))
    replies, failed = await ask_rows(model, calls)
    for (row, _), reply in zip(calls, replies, strict=True):
        steps = [] if reply.failure else tidy(reply.data["steps"])
        rows[row] = tuple(Text(step) for step in steps) or rows[row]
    return Texts(rows, failed)
