"""The keywords of a question, as LightRAG searches them: low ones name entities, high ones name themes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphrag_bench.llm.base import ChatModel, Message, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.pipeline.mentions import content_runs, mentions
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.prompts import prompt, prompt_hash
from graphrag_bench.registry import register

_HERE = "graphrag_bench.pipeline"
_REPLY_TOKENS = 40  # as seen
_MOST = 8
_LIST = {"type": "array", "maxItems": _MOST, "items": {"type": "string", "minLength": 1}}
_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["low", "high"],
    "properties": {"low": _LIST, "high": _LIST},
}


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question."""
    asked = prompt_of(prompt(_HERE, "keywords_system"), prompt(_HERE, "keywords"), "Question: ") + scale.question
    return Calls.each(scale.questions, asked, min(_REPLY_TOKENS, settings["max_tokens"]))


@register("converter", "keywords.model", prompts=prompt_hash(_HERE, "keywords_system", "keywords"), calls=calls)
async def by_model(questions: Questions, model: ChatModel, *, max_tokens: int = 160) -> Questions:
    """Ask the model for the low-level and high-level keywords of each question; either list becomes one text.

    A question whose reply cannot be read has failed, and so has one for which the model names no keyword at all: LightRAG
    then answers with its refusal text, without searching. One empty list is kept: that side of the search finds nothing.

    Args:
        questions: the batch.
        model: who is asked, once a question.
        max_tokens: room for a reply.
    """
    asked = [number for number in range(len(questions)) if number not in questions.failed]
    replies = await model.ask_all(
        [
            Request(
                (
                    Message("system", prompt(_HERE, "keywords_system")),
                    Message("user", f"{prompt(_HERE, 'keywords')}\n\nQuestion: {questions.texts[number]}"),
                ),
                max_tokens,
                "question",
                "keywords",
                questions.ids[number],
                _SCHEMA,
            )
            for number in asked
        ]
    )
    high, low = [""] * len(questions), [""] * len(questions)
    failed: dict[int, str] = {}
    for number, reply in zip(asked, replies, strict=True):
        if reply.failure:
            failed[number] = f"{reply.failure.kind}: {reply.failure.message}"
            continue
        high[number], low[number] = _joined(reply.data["high"]), _joined(reply.data["low"])
        if not high[number] and not low[number]:
            failed[number] = "empty: the model named no keyword of this question"
    return replace(questions, high=tuple(high), low=tuple(low), failed={**questions.failed, **failed})


@register("converter", "keywords.rule")
def by_rule(questions: Questions) -> Questions:
    """Find the keywords of each question by a rule, without a model.

    Low ones are the mentions that `entities.rule` finds; high ones are the runs of content words beside them, or the whole
    question where nothing is left.
    """
    low = [mentions(text) for text in questions.texts]
    high = [_beside(text, names) or [text] for text, names in zip(questions.texts, low, strict=True)]
    return replace(questions, high=tuple(map(_joined, high)), low=tuple(map(_joined, low)))


def _joined(words: list[str] | tuple[str, ...]) -> str:
    return ", ".join(dict.fromkeys(word.strip() for word in words if word.strip()))


def _beside(text: str, names: tuple[str, ...]) -> list[str]:
    """Return the runs of content words outside the names."""
    if not names:
        return content_runs(text)
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.split(rf"(?<!\w)(?:{longest_first})(?:['’]s)?(?!\w)", text)
    return list(dict.fromkeys(run for part in parts for run in content_runs(part)))
