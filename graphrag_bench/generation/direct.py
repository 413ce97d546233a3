"""Direct answering: one prompt a question, the context first since it is what questions can share."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from graphrag_bench.evaluation.refusal import is_refusal
from graphrag_bench.generation.answers import Answer, Answers, Contexts
from graphrag_bench.generation.shelf import PASSAGES
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of, tokens_of
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.prompts import prompt, prompt_hash
from graphrag_bench.registry import register

_HERE = "graphrag_bench.generation"
_SHORT_TOKENS, _FREE_TOKENS, _REASONED_TOKENS = 12, 150, 120  # of replies
_MARKER = re.compile(r"answer\s*[:：]\s*\**\s*", re.IGNORECASE)
PROMPTS = prompt_hash(
    _HERE, "system", "system_context", "system_graph", "short", "free", "reasoning", "reasoning_short", "reasoning_free", "refuse"
)


def overhead(settings: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """Return how many tokens a prompt has beside context and question."""
    task = instruction(
        short_answer=settings["short_answer"], reasoning=settings["reasoning"], may_refuse=settings["may_refuse"]
    )
    return sum(count(turn.text) for turn in turns("", "x", task, "Short answer:"))


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a question."""
    asked = prompt_of() + overhead(settings, tokens_of) + scale.context_tokens + scale.question
    reply = _REASONED_TOKENS if settings["reasoning"] else reply_tokens(short_answer=settings["short_answer"])
    return Calls.each(scale.questions, asked, min(reply, settings["max_tokens"]))


def reply_tokens(*, short_answer: bool) -> int:
    """Return the tokens of an answer, as seen."""
    return _SHORT_TOKENS if short_answer else _FREE_TOKENS


@register("generator", "direct", prompts=PROMPTS, overhead=overhead, calls=calls)
async def direct(
    questions: Questions,
    contexts: Contexts,
    model: ChatModel,
    *,
    short_answer: bool = True,
    reasoning: bool = False,
    may_refuse: bool = False,
    max_tokens: int = 256,
) -> Answers:
    """Ask each question over its context, in one call.

    Args:
        questions: the batch.
        contexts: one a question; an empty text where a method retrieves nothing.
        model: who answers.
        short_answer: ask for a few words, so that exact match and F1 mean something.
        reasoning: ask for a few steps of thought first; the answer is what follows the last "Answer:".
        may_refuse: allow "unanswerable".
        max_tokens: room for the reply.
    """
    task = instruction(short_answer=short_answer, reasoning=reasoning, may_refuse=may_refuse)
    asked_for = cue(short_answer=short_answer, reasoning=reasoning)
    rows = [row for row in range(len(questions)) if row not in questions.failed]
    replies = await model.ask_all(
        [
            Request(
                turns(questions.texts[row], contexts[row].text, task, asked_for),
                max_tokens,
                "answer",
                "answer",
                questions.ids[row],
            )
            for row in rows
        ]
    )
    asked = dict(zip(rows, replies, strict=True))
    return tuple(
        _answer(questions.ids[row], asked[row], reasoning, contexts[row].cut)
        if row in asked
        else Answer(questions.ids[row], "failed", None, questions.failed[row])
        for row in range(len(questions))
    )


def instruction(*, short_answer: bool, reasoning: bool, may_refuse: bool) -> str:
    """Return what the model is told to do with the question."""
    parts = [prompt(_HERE, "short" if short_answer else "free")]
    if reasoning:
        parts = [
            f"{prompt(_HERE, 'reasoning')} {prompt(_HERE, 'reasoning_short' if short_answer else 'reasoning_free')}"
        ]
    return " ".join(parts + ([prompt(_HERE, "refuse")] if may_refuse else []))


def cue(*, short_answer: bool, reasoning: bool) -> str:
    """Return the words a prompt ends with, behind which the model writes."""
    return "Reasoning:" if reasoning else "Short answer:" if short_answer else "Answer:"


def turns(question: str, context: str, task: str, cue: str) -> tuple[Message, ...]:
    """Return the chat turns of one question: what to do, then the passages, the question, and the cue for the reply.

    The instruction stands in the system turn: behind the question, small models take it for a part of the answer.
    """
    shown = f"{context}\n\n" if context else ""
    shows = "system" if not context else "system_context" if context.startswith(PASSAGES) else "system_graph"
    system = prompt(_HERE, shows)
    return (Message("system", f"{system} {task}"), Message("user", f"{shown}Question: {question}\n{cue}"))


def _answer(question: str, reply: Reply, reasoning: bool, cut: int) -> Answer:
    if reply.failure is not None:
        return Answer(question, "failed", None, f"{reply.failure.kind}: {reply.failure.message}", reply.text, cut)
    text = reply.text.strip()
    if reasoning:
        said = [after for mark in _MARKER.finditer(text) if (after := text[mark.end() :].strip())]
        if not said and reply.truncated:
            reason = "truncated: the reasoning came to no answer within max_tokens"
            return Answer(question, "failed", None, reason, reply.text, cut)
        text = said[-1] if said else text
    return Answer(question, "refused" if is_refusal(text) else "ok", text, "", reply.text if reasoning else "", cut)
