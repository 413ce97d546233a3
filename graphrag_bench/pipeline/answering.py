"""Contexts and answers for a batch whose retrieval is done."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.generation.answers import Answer, Answers, Context
from graphrag_bench.generation.context import assemble
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.service import together
from graphrag_bench.pipeline.plan import Plan
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import NONE_FAILED, Ranking

_TURN_TOKENS = 16  # what a chat template puts around each of the two turns, at most
Finished = Callable[[Answer, Context], None]


def with_failures(questions: Questions, values: Mapping[str, Any]) -> Questions:
    """Return the questions, marked as failed where any step failed them."""
    failed = dict(questions.failed)
    for value in values.values():
        failed.update(value.failed)
    return replace(questions, failed=failed)


def contexts(
    plan: Plan, model: ChatModel, questions: Questions, values: Mapping[str, Any], chunks: ChunkTable
) -> tuple[Context, ...]:
    """Return every question's context, in the room the model's window leaves beside instruction, question and reply."""
    if plan.generator is None:
        return tuple(Context("") for _ in questions.ids)
    component, settings = plan.generator
    overhead = component.extra["overhead"](settings, model.count) + 2 * _TURN_TOKENS
    rows = []
    for number, text in enumerate(questions.texts):
        if number in questions.failed or not plan.sections:
            rows.append(Context(""))
            continue
        room = model.window - int(settings.get("max_tokens", 0)) - overhead - model.count(text)
        rows.append(assemble(plan.sections, values, number, chunks, max(room, 0), model.count))
    return tuple(rows)


async def answer_batch(
    plan: Plan,
    model: ChatModel,
    questions: Questions,
    values: Mapping[str, Any],
    chunks: ChunkTable,
    finished: Finished = lambda answer, context: None,
) -> Answers:
    """Answer every question of the batch at once, as far as the model's limiter lets them.

    Args:
        plan: its context sections and generator.
        model: who answers.
        questions: the batch, converted.
        values: what retrieval gave.
        chunks: where texts are looked up.
        finished: told of each answer as it comes, in no particular order.
    """
    if plan.generator is None:
        return ()
    component, settings = plan.generator
    questions = with_failures(questions, values)
    shown = contexts(plan, model, questions, values, chunks)
    # asked without a word of what was retrieved, the question would be another method's
    bare = {row: "too_long: the window leaves no room for a context" for row, c in enumerate(shown) if c.cut and not c.text}
    questions = replace(questions, failed={**questions.failed, **bare})

    async def one(number: int) -> Answer:
        failed = {0: questions.failed[number]} if number in questions.failed else NONE_FAILED
        entities = None if questions.entities is None else (questions.entities[number],)
        single = Questions((questions.ids[number],), (questions.texts[number],), entities, failed)
        answer: Answer = (await component.call(single, (shown[number],), model, **settings))[0]
        finished(answer, shown[number])
        return answer

    return tuple(await together(one(number) for number in range(len(questions))))


def retrieved_documents(
    plan: Plan, values: Mapping[str, Any], number: int, chunks: ChunkTable, depth: int
) -> tuple[str, ...] | None:
    """Return the documents a question's ranked chunks come from, best first, each once; None if the method retrieves none."""
    if not plan.sections:
        return None
    found: dict[str, None] = {}
    for section in plan.sections:
        for source in section.sources:
            value = values[source]
            assert isinstance(value, Ranking)
            for identity in value.row(number).ids:
                found.update(dict.fromkeys(chunks[int(identity)].documents))
                if len(found) >= depth:
                    return tuple(found)[:depth]
    return tuple(found)
