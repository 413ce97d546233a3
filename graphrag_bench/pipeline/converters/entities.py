"""The entities of a question: as the dataset gives them, by a rule, or by the model."""

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files

from graphrag_bench.llm.base import ChatModel, Message, Request
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.prompts import prompt, prompt_hash
from graphrag_bench.registry import register

_HERE = "graphrag_bench.pipeline"
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


@register("converter", "entities.model", prompts=prompt_hash(_HERE, "entities_system", "entities"))
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


_QUOTED = re.compile(r"[\"“«]([^\"”»]{2,})[\"”»]|(?<!\w)['‘]([^'’]{2,}?)['’](?!\w)")
_NAME = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w.'’&/-]*|\d[\w.,:/-]*)"
_SHORT = "of|the|and|&|for|in|on|at|to|with|from|by|de|la|le|von|van|der|den|du|da|do|dos|del|di|bin|al"
_CAPITALISED = re.compile(rf"{_NAME}(?:\s+(?:(?:{_SHORT})\s+){{0,2}}{_NAME})*")
_WORD = re.compile(r"[^\W_][\w'’-]*")
@register("converter", "entities.rule")
def by_rule(questions: Questions) -> Questions:
    """Find the entities of each question by a rule, without a model.

    Quoted phrases and runs of capitalised words or numbers (joined over short words such as "of the"), less the asking
    words a question begins with. A question without any is read as its runs of content words.
    """
    return replace(questions, entities=tuple(mentions(text) for text in questions.texts))


def mentions(text: str) -> tuple[str, ...]:
    """Return the mentions of one question, in the order they stand in it."""
    asking = _words("asking")
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        if name := (match.group(1) or match.group(2)).strip(" ,.?!"):
            found[name] = None
    rest = _QUOTED.sub(" , ", text)
    for match in _CAPITALISED.finditer(rest):
        words = match.group().split()
        while words and words[0].casefold().strip(".,'’") in asking:
            words.pop(0)
        name = re.sub(r"['’]s$", "", " ".join(words).strip(" ,.?!:;"))
        if len(name) > 1 or name.isdigit():
            found[name] = None
    if not found:
        found = dict.fromkeys(_content_runs(text))
    return tuple(found)


def _content_runs(text: str) -> list[str]:
    empty = _words("asking") | _words("plain")
    runs: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        if word.casefold() in empty:
            runs.append([])
        else:
            runs[-1].append(word)
    return [" ".join(run) for run in runs if run]


@cache
def _words(name: str) -> frozenset[str]:
    """Return a word list: "asking" words begin questions, "plain" ones name nothing by themselves."""
    return frozenset(files(_HERE).joinpath("words", f"{name}.txt").read_text("utf-8").split())
