"""Extraction of described records in one turn a chunk, and rounds that ask for what was missed (GraphRAG, LightRAG)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of, tokens_of
from graphrag_bench.llm.service import together
from graphrag_bench.llm.window import PER_MESSAGE, cut_to_window, prompt_tokens
from graphrag_bench.prompts import prompt, prompt_hash, render
from graphrag_bench.registry import register

_HERE = "graphrag_bench.graph"
_TYPES = ["organization", "person", "location", "event"]
_OTHER = "other"
_STRONGEST = 10
_NAME = 100  # characters of a name or keyword, so that a model that cannot end one is stopped
_RECORDS_TOKENS, _GLEANED_TOKENS = 600, 250  # of the replies for a chunk, as seen
_SENTENCES = re.compile(r".*[.!?。！？।]", re.DOTALL)
PROMPTS = prompt_hash(_HERE, "records", "records_keywords", "records_example", "records_example_reply", "gleaning")
Records = tuple[tuple[EntityRecord, ...], tuple[RelationRecord, ...], str | None]


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return one call a chunk and its rounds, each over all turns before it; a round after the first may be left out."""
    start = _start([*settings["entity_types"], _OTHER], settings["keywords"])
    said, more = min(_RECORDS_TOKENS, settings["record_tokens"]), min(_GLEANED_TOKENS, settings["gleaning_tokens"])
    asked = scale.chunk + prompt_of(*start)
    found = Calls.each(scale.chunks, asked, said)
    for number in range(settings["gleaning"]):
        asked += said + tokens_of(prompt(_HERE, "gleaning"))
        said = more
        found += Calls.each(scale.chunks, asked, said, "at most" if number else "")
    return found


@register("extractor", "described", spends=True, prompts=PROMPTS, calls=calls)
async def extract(
    chunks: ChunkTable,
    model: ChatModel,
    *,
    entity_types: list[str] = _TYPES,
    keywords: bool = False,
    gleaning: int = 1,
    max_entities: int = 16,
    max_relations: int = 16,
    description_chars: int = 300,
    record_tokens: int = 1536,
    gleaning_tokens: int = 512,
) -> RichExtraction:
    """Ask for the described entities and relations of each chunk, then for those that were missed.

    The task and an example, which all chunks share, stand before the passage. A gleaning round goes on in the same chat:
    the reply before it is the model's own turn. Rounds end early with one that adds nothing. An entity is told from
    another by its name up to case, a relation by its ends and description; the first record stands. A strength beyond 1 to 10
    counts as the nearer of the two. An end of a relation
    that is not among the entities becomes one, without type and description. A passage longer than the window leaves room
    for is cut at a word, its head kept, and counted. A chunk has failed when its first call has; a failed round leaves it
    what it has, and is seen in the ledger.

    Args:
        chunks: what to read.
        model: who reads.
        entity_types: the types to tell apart; "other" is always one.
        keywords: ask for the keywords of relations too, which an rkg wants.
        gleaning: rounds that ask for what was missed, at most.
        max_entities: entities a reply at most; the schema says so.
        max_relations: relations a reply at most.
        description_chars: length of a description at most; the schema says so, and a sentence it cuts off is dropped.
        record_tokens: room for the first reply; one cut here keeps its complete records.
        gleaning_tokens: room for the reply of a round.
    """
    types = list(dict.fromkeys((*entity_types, _OTHER)))
    schema = _schema(types, keywords, max_entities, max_relations, description_chars)
    start, more = _start(types, keywords), prompt(_HERE, "gleaning")
    fixed = prompt_tokens((*start, Message("user", "Passage:\n")), model.count) + record_tokens
    room = model.window - fixed - gleaning * (model.count(more) + gleaning_tokens + 2 * PER_MESSAGE)
    cut: list[int] = []

    async def one(number: int, text: str) -> Records:
        if len(text.encode()) > room > 0 and model.count(text) > room:  # no token is shorter than a byte
            text = cut_to_window(text, room, model.count)
            cut.append(number)
        subject = f"chunk {number}"
        turns = [*start, Message("user", f"Passage:\n{text}")]
        reply = await model.ask(Request(tuple(turns), record_tokens, "extraction", "records", subject, schema))
        if reply.failure is not None:
            return (), (), f"{reply.failure.kind}: {reply.failure.message}"
        found = _Found(description_chars)
        found.add(reply.data)
        for _ in range(gleaning):
            turns += [Message("assistant", _said(reply)), Message("user", more)]
            reply = await model.ask(Request(tuple(turns), gleaning_tokens, "extraction", "gleaning", subject, schema))
            if reply.failure is not None or not found.add(reply.data):
                break
        return found.entities(), tuple(found.relations.values()), None

    todo = iter(chunks)
    rows: dict[int, Records] = {}

    async def work() -> None:
        for chunk in todo:
            rows[chunk.id] = await one(chunk.id, chunk.text)

    # as many chunks at a time as the model takes calls, so that a chunk's rounds come right behind each other, while the
    # runtime still has what they share
    await together(work() for _ in range(min(len(chunks), model.concurrency)))
    made = [rows[chunk.id] for chunk in chunks]
    failed = {number: reason for number, (_, _, reason) in enumerate(made) if reason is not None}
    return RichExtraction(tuple(row[0] for row in made), tuple(row[1] for row in made), failed, cut=len(cut))


class _Found:
    """The records of one chunk, each once, in the order they came."""

    def __init__(self, most: int) -> None:
        self.most = most  # characters of a description
        self.named: dict[str, EntityRecord] = {}
        self.relations: dict[tuple[str, str, str], RelationRecord] = {}

    def add(self, data: Mapping[str, Any]) -> bool:
        """Take the records of a reply; say whether any was new."""
        before = len(self.named) + len(self.relations)
        for record in data["entities"]:
            name = _tidy(record["name"])
            if name:
                made = EntityRecord(name, record["type"], self._whole(record["description"]))
                self.named.setdefault(name.casefold(), made)
        for record in data["relations"]:
            source, target, said = _tidy(record["source"]), _tidy(record["target"]), self._whole(record["description"])
            if source and target:
                words = tuple(dict.fromkeys(filter(None, map(_tidy, record.get("keywords", ())))))
                strength = float(min(max(record["strength"], 1), _STRONGEST))
                key = (source.casefold(), target.casefold(), said.casefold())
                self.relations.setdefault(key, RelationRecord(source, target, "", said, words, strength))
        return len(self.named) + len(self.relations) > before

    def _whole(self, description: str) -> str:
        """Return a description tidied; one that reached the bound ends with its last whole sentence, or else word."""
        if len(description) < self.most:
            return _tidy(description)
        sentences = _SENTENCES.match(description)
        return _tidy(sentences.group() if sentences else description.rpartition(" ")[0] or description)

    def entities(self) -> tuple[EntityRecord, ...]:
        """Return the entities, behind them the ends of relations that are none of them."""
        every = dict(self.named)
        for relation in self.relations.values():
            for name in (relation.source, relation.target):
                every.setdefault(name.casefold(), EntityRecord(name))
        return tuple(every.values())


def _start(types: Sequence[str], keywords: bool) -> list[Message]:
    """Return what every chunk's chat begins with: the task, and an example as a turn of the chat."""
    task = render(
        _HERE, "records", types=", ".join(types), keywords=prompt(_HERE, "records_keywords") if keywords else ""
    )
    shown = json.loads(prompt(_HERE, "records_example_reply"))
    for entity in shown["entities"]:
        entity["type"] = entity["type"] if entity["type"] in types else _OTHER
    for relation in shown["relations"] if not keywords else ():
        del relation["keywords"]
    example = f"Passage:\n{prompt(_HERE, 'records_example')}"
    return [Message("system", task), Message("user", example), Message("assistant", json.dumps(shown))]


def _said(reply: Reply) -> str:
    """Return a reply as the chat goes on from it; one that was cut off, without its broken end."""
    return json.dumps(reply.data, ensure_ascii=False) if reply.truncated else reply.text


def _tidy(text: object) -> str:
    return " ".join(str(text).split())


def _schema(
    types: Sequence[str], keywords: bool, max_entities: int, max_relations: int, description_chars: int
) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1, "maxLength": _NAME}
    text = {"type": "string", "minLength": 1, "maxLength": description_chars}
    words = {"keywords": {"type": "array", "items": name, "minItems": 1, "maxItems": 3}} if keywords else {}
    entity = {"name": name, "type": {"enum": list(types)}, "description": text}
    relation = {"source": name, "target": name, "description": text, **words, "strength": {"type": "integer"}}
    lists = {"entities": _list(entity, max_entities), "relations": _list(relation, max_relations)}
    return _object(lists)


def _list(fields: dict[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": _object(fields), "maxItems": most}


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
