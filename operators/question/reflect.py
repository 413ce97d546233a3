"""Reflect: whether what was noted answers the question, and which steps are missing where it does not (KAG)."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import Calls, Scale
from graphrag_bench.pipeline.texts import Questions, Text, Texts, Truths
from graphrag_bench.registry import operator
from operators._asking import STAGE, ask_rows, bullets, listed, object_of, prompts, reckoned, room, rows_to_do, turns
from operators._steps import STEP, tidy

_NOTE_TOKENS = 25


class Reflection(NamedTuple):
    """The steps with those that were missing, and which questions need none."""

    steps: Texts
    done: Truths


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question, or none."""
    if settings["reflection"] == "none":
        return Calls()
    most, shown = settings["max_steps"], scale.inputs["notes"] * _NOTE_TOKENS
    return reckoned("reflect", scale, settings, 1, shown, 6 + 12 * most, most=str(most))


@operator(
    "question.reflect", prompts=prompts("reflect"), calls=calls,
    yields=lambda settings, scale: scale.inputs["steps"] + settings["max_steps"],
)  # fmt: skip
async def reflect(
    questions: Questions,
    model: ChatModel,
    steps: Texts,
    notes: Texts,
    *,
    reflection: Literal["model", "none"] = "model",
    max_steps: int = 2,
    max_tokens: int = 160,
) -> Reflection:
    """Ask whether the notes answer the question, and for the steps that are missing: one call a question.

    A question is done when its notes suffice or no new step is named. One with an open step is left as it is, unasked and
    not done, so that a loop may begin with this; one whose reply cannot be read has failed.

    Args:
        questions: the batch, in its own words.
        model: who is asked.
        steps: the steps of each question.
        notes: what was found in them.
        reflection: by the model, or ``none``: no step is added, and every question is done with those it has.
        max_steps: new steps at most.
        max_tokens: room for a reply.
    """
    proposed = {"type": "array", "minItems": 1, "maxItems": max_steps, "items": STEP}
    # two forms, as a small model told that steps may be none says that something is missing, and names nothing
    schema = {"anyOf": [object_of(enough={"const": "yes"}), object_of(enough={"const": "no"}, steps=proposed)]}
    rows, done = list(steps), [len(found) >= len(planned) for found, planned in zip(notes, steps, strict=True)]
    if reflection == "none":
        return Reflection(steps, Truths([True] * len(rows)))
    calls: list[tuple[int, Request]] = []
    for row in rows_to_do(len(questions), questions, steps, notes):
        if done[row]:
            question, most = f"Question: {questions.texts[row]}", str(max_steps)
            left = room(model, turns("reflect", "Notes:\n", question, most=most), max_tokens)
            shown = bullets("Notes", listed([text for text, _ in notes.row(row)], left, model))
            asked = turns("reflect", shown, question, most=most)
            calls.append((row, Request(asked, max_tokens, STAGE, "reflect", questions.ids[row], schema)))
    replies, failed = await ask_rows(model, calls)
    for (row, _), reply in zip(calls, replies, strict=True):
        if not reply.failure and reply.data["enough"] == "no":
            more = tidy(reply.data["steps"], [text for text, _ in rows[row]])
            rows[row] = (*rows[row], *(Text(text) for text in more))
            done[row] = not more
    return Reflection(Texts(rows, failed), Truths(done, failed))
