"""What operators that ask the model share: prompts that list options, replies read question by question, facts as text.

Options are named, not numbered, and the question stands last: asked for numbers, a model of half a billion parameters picks
1, 2, 3 whatever they stand for; asked for the words themselves, which the schema holds it to, it reads them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.llm.window import prompt_tokens
from graphrag_bench.pipeline.walks import Path
from graphrag_bench.prompts import prompt_hash, render

_HERE = "operators"
STAGE = "retrieve"
Turns = tuple[Message, ...]


def prompts(purpose: str) -> str:
    """Return the hash of what a purpose's prompt is made of, for keys."""
    return prompt_hash(_HERE, "system", purpose)


def turns(purpose: str, *parts: str, **fields: str) -> Turns:
    """Return the two turns of a call: the instruction of ``prompts/PURPOSE.txt``, which its calls share, then the parts."""
    task = "\n\n".join([render(_HERE, purpose, **fields), *(part for part in parts if part)])
    return (Message("system", render(_HERE, "system")), Message("user", task))


def reckoned(
    purpose: str, scale: Scale, settings: Mapping[str, Any], each: int, shown: float, reply: int, **fields: str
) -> Calls:
    """Return what a purpose's calls are likely to take: ``each`` a question at most, over so many tokens of options.

    Args:
        purpose: names the prompt.
        scale: how many questions, and how long.
        settings: the operator's, for the room of a reply.
        each: calls a question.
        shown: tokens of what a prompt shows beside instruction and question.
        reply: tokens of a usual reply.
        fields: the fields of the prompt.
    """
    asked = prompt_of(*turns(purpose, "Question: ", **fields)) + scale.question + min(shown, scale.window)
    return Calls.each(scale.questions * each, asked, min(reply, settings["max_tokens"]), "at most")


def room(model: ChatModel, asked: Turns, max_tokens: int) -> int:
    """Return how many tokens the window leaves beside a prompt and its reply."""
    return model.window - max_tokens - prompt_tokens(asked, model.count)


def listed(lines: Sequence[str], tokens: int, model: ChatModel) -> list[str]:
    """Return the lines that ``tokens`` can hold: the last are left out, whole, but never the first.

    With nothing to show, a call is to fail as too long rather than be asked blindly.
    """
    if sum(len(line.encode()) + 3 for line in lines) <= tokens:  # no token is shorter than a byte
        return list(lines)
    left = tokens
    for at, line in enumerate(lines):
        left -= model.count(f"- {line}\n")
        if left < 0:
            return list(lines[: max(at, 1)])
    return list(lines)


def bullets(title: str, lines: Iterable[str]) -> str:
    """Return a titled list."""
    return "\n".join([f"{title}:", *(f"- {line}" for line in lines)])


async def ask_rows(model: ChatModel, calls: Sequence[tuple[int, Request]]) -> tuple[list[Reply], dict[int, str]]:
    """Send the calls of a batch together; say which questions have lost every one of theirs, and why.

    Args:
        model: who is asked.
        calls: each with the row of its question. A question may have none, or several.
    """
    replies = await model.ask_all([request for _, request in calls])
    rows = [row for row, _ in calls]
    served = {row for row, reply in zip(rows, replies, strict=True) if reply.failure is None}
    failed: dict[int, str] = {}
    for row, reply in zip(rows, replies, strict=True):
        if reply.failure is not None and row not in served:
            failed.setdefault(row, f"{reply.failure.kind}: {reply.failure.message}")
    return replies, failed


def rows_to_do(size: int, *values: Any) -> list[int]:
    """Return the rows that have failed in none of the values; None stands for an input that is not wired."""
    lost = {row for value in values if value is not None for row in value.failed}
    return [row for row in range(size) if row not in lost]


def object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with just these fields."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


def scored(lines: Sequence[str], most: int) -> dict[str, Any]:
    """Return the schema of at most ``most`` of the lines, each with a score from 1 to 10."""
    pick = object_of(
        name={"type": "string", "enum": list(lines)}, score={"type": "integer", "enum": list(range(1, 11))}
    )
    return object_of(picks={"type": "array", "minItems": 1, "maxItems": most, "items": pick})


def shares(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the lines picked with their shares of the score; of a line picked twice the first counts."""
    scores: dict[str, int] = {}
    for pick in data["picks"]:
        scores.setdefault(pick["name"], pick["score"])
    return {name: score / sum(scores.values()) for name, score in scores.items()}


def triple_text(graph: Graph, relationship: int) -> str:
    """Return a relationship as text: source -> what it says -> target."""
    source, target = graph.names([int(graph.sources[relationship]), int(graph.targets[relationship])])
    return f"{source} -> {graph.label(relationship)} -> {target}"


def path_text(graph: Graph, path: Path) -> str:
    """Return the relationships of a path as text, each in its own direction."""
    return "; ".join(triple_text(graph, relationship) for relationship in path.relationships)


def facts_text(graph: Graph, paths: Iterable[Path]) -> list[str]:
    """Return the facts on the paths, each once, in the order met."""
    met = dict.fromkeys(relationship for path in paths for relationship in path.relationships)
    return [triple_text(graph, relationship) for relationship in met]
