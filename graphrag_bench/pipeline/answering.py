"""Contexts and answers for a batch whose retrieval is done."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from graphrag_bench.generation.answers import Answer, Answers, Context
from graphrag_bench.generation.context import BOUNDLESS, assemble, headings
from graphrag_bench.generation.shelf import Shelf
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.service import together
from graphrag_bench.pipeline.execute import look_up
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.texts import Questions

_TURN_TOKENS = 16  # what a chat template puts around each of the two turns, at most
Finished = Callable[[Answer, Context], None]


def with_failures(questions: Questions, values: Mapping[str, Any]) -> Questions:
    """Return the questions, marked as failed where any step failed them."""
    failed = dict(questions.failed)
    for value in values.values():
        failed.update(value.failed)
    return replace(questions, failed=failed)


def shown_values(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values the context's sections name, parts of values included."""
    return {source: look_up(values, source) for section in plan.sections for source in section.sources}


def contexts(
    plan: Plan, model: ChatModel, questions: Questions, values: Mapping[str, Any], shelf: Shelf
) -> tuple[Context, ...]:
    """Return every question's context, in the room the model's window leaves beside instruction, question and reply.

    A generator that puts its prompts together itself (``whole``) gets every element its sections allow.
    """
    if plan.generator is None:
        return tuple(Context("") for _ in questions.ids)
    component, settings = plan.generator
    overhead = component.extra["overhead"](settings, model.count) + 2 * _TURN_TOKENS
    overhead += sum(model.count(heading) for heading in headings(plan.sections, shelf))
    values = shown_values(plan, values)
    rows = []
    for number, text in enumerate(questions.texts):
        if number in questions.failed or not plan.sections:
            rows.append(Context(""))
            continue
        room = model.window - int(settings.get("max_tokens", 0)) - overhead - model.count(text)
        room = BOUNDLESS if component.extra.get("whole") else max(room, 0)
        rows.append(assemble(plan.sections, values, number, shelf, room, model.count, plan.cut))
    return tuple(rows)


async def answer_batch(
    plan: Plan,
    model: ChatModel,
    questions: Questions,
    values: Mapping[str, Any],
    shelf: Shelf,
    finished: Finished = lambda answer, context: None,
) -> Answers:
    """Answer every question of the batch at once, as far as the model's limiter lets them.

    Args:
        plan: its context sections and generator.
        model: who answers.
        questions: the batch, converted.
        values: what retrieval gave.
        shelf: where texts are looked up.
        finished: told of each answer as it comes, in no particular order.
    """
    if plan.generator is None:
        return ()
    component, settings = plan.generator
    questions = with_failures(questions, values)
    shown = contexts(plan, model, questions, values, shelf)
    # asked without a word of what was retrieved, the question would be another method's
    bare = {row: "too_long: the window leaves no room for a context" for row, c in enumerate(shown) if c.cut and not c.text}
    questions = replace(questions, failed={**questions.failed, **bare})

    async def one(number: int) -> Answer:
        single = questions.take([number])
        answer: Answer = (await component.call(single, (shown[number],), model, **settings))[0]
        finished(answer, shown[number])
        return answer

    return tuple(await together(one(number) for number in range(len(questions))))


def retrieved_documents(
    plan: Plan, values: Mapping[str, Any], number: int, shelf: Shelf, depth: int
) -> tuple[str, ...] | None:
    """Return the documents a question's retrieved elements stand for, best first, each once; None if they stand for none."""
    found = shelf.documents(plan.sections, shown_values(plan, values), number) if plan.sections else None
    return None if found is None else tuple(islice(dict.fromkeys(_until(found, depth)), depth))


def retrieved_elements(
    plan: Plan, values: Mapping[str, Any], number: int, shelf: Shelf, depth: int
) -> dict[str, list[dict[str, Any]]]:
    """Return what every section of the context holds for one question, before anything is cut: ids, scores, labels."""
    found = shown_values(plan, values)
    return {section.name: shelf.listed(section, found, number, depth) for section in plan.sections}


def _until(documents: Any, depth: int) -> Any:
    """Yield documents until ``depth`` different ones have come."""
    seen: set[str] = set()
    for document in documents:
        seen.add(document)
        yield document
        if len(seen) >= depth:
            return
