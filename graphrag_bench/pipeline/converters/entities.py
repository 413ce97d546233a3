"""The entities of a question: as the dataset gives them, by a rule, or by the model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphrag_bench.llm.base import ChatModel, Message, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.mentions import mentions
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.prompts import prompt, prompt_hash
from graphrag_bench.registry import register

_HERE = "graphrag_bench.pipeline"
_REPLY_TOKENS = 25  # as seen
_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["entities"],
    "properties": {"entities": {"type": "array", "maxItems": 8, "items": {"type": "string", "minLength": 1}}},
}


@register("converter", "entities.given")
def given(questions: Questions, entities: GivenEntities) -> Questions:
    """Take the entities the dataset holds for each question; a question it does not speak of has failed."""
    rows = tuple(entities.by_question.get(identity, ()) for identity in questions.ids)
    absent = {
        number: "missing: the dataset gives no entities for this question"
        for number, identity in enumerate(questions.ids)
        if identity not in entities.by_question
    }
    return replace(questions, entities=rows, failed={**questions.failed, **absent})


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question."""
    asked = prompt_of(prompt(_HERE, "entities_system"), prompt(_HERE, "entities"), "Question: ") + scale.question
    return Calls.each(scale.questions, asked, min(_REPLY_TOKENS, settings["max_tokens"]))


@register("converter", "entities.model", prompts=prompt_hash(_HERE, "entities_system", "entities"), calls=calls)
async def by_model(questions: Questions, model: ChatModel, *, max_tokens: int = 128) -> Questions:
    """Ask the model for the named entities of each question; a question whose reply cannot be read has failed."""
    turns = [
        (
            Message("system", prompt(_HERE, "entities_system")),
            Message("user", f"{prompt(_HERE, 'entities')}\n\nQuestion: {text}"),
        )
        for text in questions.texts
    ]
    replies = await model.ask_all(
        [
            Request(turn, max_tokens, "question", "entities", identity, _SCHEMA)
            for turn, identity in zip(turns, questions.ids, strict=True)
        ]
    )
    rows = tuple(
        tuple(dict.fromkeys(name.strip() for name in reply.data["entities"] if name.strip()))
        if not reply.failure
        else ()
        for reply in replies
    )
    failed = {
        number: f"{reply.failure.kind}: {reply.failure.message}"
        for number, reply in enumerate(replies)
        if reply.failure
    }
    return replace(questions, entities=rows, failed={**questions.failed, **failed})


@register("converter", "entities.rule")
def by_rule(questions: Questions) -> Questions:
    """Find the entities of each question by a rule, without a model.

    Quoted phrases and runs of capitalised words or numbers (joined over short words such as "of the"), less the asking
    words a question begins with. A question without any is read as its runs of content words.
    """
    return replace(questions, entities=tuple(mentions(text) for text in questions.texts))
