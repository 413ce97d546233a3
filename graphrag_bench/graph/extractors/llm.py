"""Extraction by a model in two turns a chunk: its named entities, then triples over them (the OpenIE of HippoRAG)."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.extraction import Extraction, Triple, clean, dump_names
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.llm.service import together
from graphrag_bench.llm.window import cut_to_window
from graphrag_bench.prompts import prompt, prompt_hash, render
from graphrag_bench.registry import register

_HERE = "graphrag_bench.graph"
_STRINGS = {"type": "string", "minLength": 1}
_MARGIN = 64  # what a chat template and the words around the passage take, at most
PROMPTS = prompt_hash(_HERE, "system", "entities", "triples")
_NAMES_TOKENS, _TRIPLES_TOKENS = 60, 190  # of the replies for a chunk, as seen


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return two calls a chunk; the second prompt holds the names of the first reply."""
    names, triples = min(_NAMES_TOKENS, settings["entity_tokens"]), min(_TRIPLES_TOKENS, settings["triple_tokens"])
    system = prompt(_HERE, "system")
    first = Calls.each(scale.chunks, scale.chunk + prompt_of(system, prompt(_HERE, "entities")), names)
    return first + Calls.each(scale.chunks, scale.chunk + prompt_of(system, prompt(_HERE, "triples")) + names, triples)


@register("extractor", "llm", prompts=PROMPTS, calls=calls)
async def extract(
    chunks: ChunkTable,
    model: ChatModel,
    *,
    max_entities: int = 24,
    max_triples: int = 24,
    entity_tokens: int = 256,
    triple_tokens: int = 640,
) -> Extraction:
    """Ask for the entities of each chunk, then for triples over them.

    Both prompts begin with the same system text and the passage, so a runtime that keeps prompt prefixes reads each
    passage once. A passage longer than the window leaves room for is cut at a word, its head kept, and counted. A chunk
    whose entities cannot be had still gives triples; either failure is recorded.

    Args:
        chunks: what to read.
        model: who reads.
        max_entities: entities a chunk at most; the schema says so.
        max_triples: triples a chunk at most.
        entity_tokens: room for the first reply.
        triple_tokens: room for the second; a reply cut here keeps its complete triples.
    """
    entity_schema = _list_schema("entities", _STRINGS, max_entities)
    triple = {"type": "array", "items": _STRINGS, "minItems": 3, "maxItems": 3}
    triple_schema = _list_schema("triples", triple, max_triples)

    fixed = sum(map(model.count, (prompt(_HERE, "system"), prompt(_HERE, "triples")))) + entity_tokens + _MARGIN
    room = model.window - max(entity_tokens, triple_tokens) - fixed
    cut: list[int] = []

    async def one(number: int, text: str) -> tuple[tuple[str, ...], tuple[Triple, ...], str | None]:
        if len(text.encode()) > room > 0 and model.count(text) > room:  # no token is shorter than a byte
            text = cut_to_window(text, room, model.count)
            cut.append(number)
        passage = f"Passage:\n{text}\n\n"
        subject = f"chunk {number}"
        first = await model.ask(
            Request(
                _turns(passage + prompt(_HERE, "entities")),
                entity_tokens,
                "extraction",
                "entities",
                subject,
                entity_schema,
            )
        )
        names, _ = clean([] if first.failure else first.data["entities"], [])
        task = render(_HERE, "triples", entities=dump_names(names))
        second = await model.ask(
            Request(_turns(passage + task), triple_tokens, "extraction", "triples", subject, triple_schema)
        )
        names, triples = clean(names, [] if second.failure else second.data["triples"])
        return names, triples, _reason(second) or _reason(first)

    todo = iter(chunks)
    found: dict[int, tuple[tuple[str, ...], tuple[Triple, ...], str | None]] = {}

    async def work() -> None:
        for chunk in todo:
            found[chunk.id] = await one(chunk.id, chunk.text)

    # as many chunks at a time as the model takes calls: a chunk's second call then comes right behind its first, while the
    # runtime still has the passage they share
    await together(work() for _ in range(min(len(chunks), model.concurrency)))
    rows = [found[chunk.id] for chunk in chunks]
    failed = {number: reason for number, (_, _, reason) in enumerate(rows) if reason is not None}
    return Extraction(tuple(row[0] for row in rows), tuple(row[1] for row in rows), failed, cut=len(cut))


def _turns(task: str) -> tuple[Message, ...]:
    return (Message("system", prompt(_HERE, "system")), Message("user", task))


def _list_schema(field: str, item: dict[str, object], most: int) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {field: {"type": "array", "items": item, "maxItems": most}},
        "required": [field],
        "additionalProperties": False,
    }


def _reason(reply: Reply) -> str | None:
    return None if reply.failure is None else f"{reply.failure.kind}: {reply.failure.message}"
