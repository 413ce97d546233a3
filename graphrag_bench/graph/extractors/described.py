"""Extraction of described records in one turn a chunk, and rounds that ask for what was missed (GraphRAG, LightRAG)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph import record_prompts
from graphrag_bench.graph.claims import ClaimRecord, claim_of
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.graph.found_records import FoundRecords
from graphrag_bench.graph.importing import files_digest
from graphrag_bench.graph.record_prompts import (
    HERE,
    OTHER,
    claims_schema,
    claims_start,
    claims_turn,
    missed_schema,
    records_schema,
    start,
)
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import MENTIONS, NAME_TOKENS, Calls, Scale, prompt_of, tokens_of
from graphrag_bench.llm.service import together
from graphrag_bench.llm.window import PER_MESSAGE, cut_to_window, prompt_tokens
from graphrag_bench.prompts import prompt
from graphrag_bench.registry import register

_TYPES = ["organization", "person", "location", "event"]
_ABOUT = "statements about what they are said to do, own, be blamed for or take part in"
_RECORDS_TOKENS, _GLEANED_TOKENS, _CLAIMS_TOKENS = 600, 250, 300  # of the replies for a chunk, as seen
_VERDICT_TOKENS = 16  # of a yes or no as JSON
PROMPTS = record_prompts.PROMPTS
Reflect = Literal["none", "before", "between"]
Records = tuple[tuple[EntityRecord, ...], tuple[RelationRecord, ...], tuple[ClaimRecord, ...], str | None]


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return one call a chunk and its rounds, each over all turns before it; a round after the first may be left out.

    What an extractor that builds on this one does not set is not asked: self-reflection, claims, examples of one's own.
    """
    reflect = settings.get("reflect", "none")
    begins = start([*settings["entity_types"], OTHER], settings["keywords"], settings.get("examples"))
    said, more = min(_RECORDS_TOKENS, settings["record_tokens"]), min(_GLEANED_TOKENS, settings["gleaning_tokens"])
    asked = scale.chunk + prompt_of(*begins)
    found = Calls.each(scale.chunks, asked, said)
    for number in range(settings["gleaning"]):
        bound: Literal["", "at most"] = "at most" if number else ""
        if _asked_before(reflect, number):
            found += Calls.each(
                scale.chunks, asked + said + tokens_of(prompt(HERE, "missed")), _VERDICT_TOKENS // 2, bound
            )
            bound = "at most"  # a no saves the round
        asked += said + tokens_of(prompt(HERE, "gleaning"))
        said = more
        found += Calls.each(scale.chunks, asked, said, bound)
    if settings.get("claims"):
        asked = scale.chunk + prompt_of(*claims_start(settings["claims_about"])) + MENTIONS * NAME_TOKENS
        found += Calls.each(scale.chunks, asked, min(_CLAIMS_TOKENS, settings["claim_tokens"]), "at most")
    return found


def _asked_before(reflect: str, number: int) -> bool:
    """Say whether the model is asked if anything is missing, before the round of this number."""
    return reflect == "before" or (reflect == "between" and number > 0)


def _reads(settings: Mapping[str, Any]) -> str:
    return files_digest([Path(settings["examples"])] if settings["examples"] is not None else [])


@register("extractor", "described", spends=True, prompts=PROMPTS, calls=calls, inputs=_reads)
async def extract(
    chunks: ChunkTable,
    model: ChatModel,
    *,
    entity_types: list[str] = _TYPES,
    keywords: bool = False,
    examples: str | None = None,
    gleaning: int = 1,
    reflect: Reflect = "none",
    claims: bool = False,
    claims_about: str = _ABOUT,
    max_entities: int = 16,
    max_relations: int = 16,
    max_claims: int = 8,
    description_chars: int = 300,
    record_tokens: int = 1536,
    gleaning_tokens: int = 512,
    claim_tokens: int = 768,
) -> RichExtraction:
    """Ask for the described entities and relations of each chunk, then for those that were missed.

    The task and an example, which all chunks share, stand before the passage. A gleaning round goes on in the same
    chat: the reply before it is the model's own turn. Rounds end early with one that adds nothing. With
    self-reflection (GraphRAG, section 3.1.2 of its paper) the model must first say, yes or no, whether anything is
    missing, and a no ends them; that question is asked aside and no part of the chat, so a round's prompt is the same
    with and without it. Claims are asked for last, about the names that were found, in a chat of their own. An entity
    is told from another by its name up to case, a relation by its ends and description; the first record stands. A
    strength beyond 1 to 10 counts as the nearer of the two. An end of a relation that is not among the entities
    becomes one, without type and description. A passage longer than the window leaves room for is cut at a word, its
    head kept, and counted. A chunk has failed when its first call has; another that fails leaves it what it has, and
    is seen in the ledger.

    Args:
        chunks: what to read.
        model: who reads.
        entity_types: the types to tell apart; "other" is always one.
        keywords: ask for the keywords of relations too, which an rkg wants.
        examples: a file of few-shot examples for a domain, JSON lines with ``text``, ``entities`` and ``relations`` as in a
            reply; null for our own.
        gleaning: rounds that ask for what was missed, at most.
        reflect: ask whether anything is missing before every round (the paper), between rounds (Microsoft's repository,
            which always makes the first), or never.
        claims: ask for the claims about the entities too.
        claims_about: what is a claim.
        max_entities: entities a reply at most; the schema says so.
        max_relations: relations a reply at most.
        max_claims: claims a chunk at most.
        description_chars: length of a description at most; the schema says so, and a sentence it cuts off is dropped.
        record_tokens: room for the first reply; one cut here keeps its complete records.
        gleaning_tokens: room for the reply of a round.
        claim_tokens: room for the claims.
    """
    types = list(dict.fromkeys((*entity_types, OTHER)))
    schema = records_schema(types, keywords, max_entities, max_relations, description_chars)
    begins, more, missed = start(types, keywords, examples), prompt(HERE, "gleaning"), prompt(HERE, "missed")
    about = claims_start(claims_about)
    fixed = prompt_tokens((*begins, Message("user", "Passage:\n")), model.count) + record_tokens
    room = model.window - fixed - gleaning * (model.count(more) + gleaning_tokens + 2 * PER_MESSAGE)
    if reflect != "none" and gleaning:  # a question aside is never longer than the last round, but for a long wording
        room -= max(model.count(missed) + _VERDICT_TOKENS - model.count(more) - gleaning_tokens, 0)
    cut: list[int] = []

    async def one(number: int, text: str) -> Records:
        if len(text.encode()) > room > 0 and model.count(text) > room:  # no token is shorter than a byte
            text = cut_to_window(text, room, model.count)
            cut.append(number)
        subject = f"chunk {number}"

        async def ask(turns: list[Message], tokens: int, purpose: str, form: Mapping[str, Any] = schema) -> Reply:
            return await model.ask(Request(tuple(turns), tokens, "extraction", purpose, subject, form))

        turns = [*begins, Message("user", f"Passage:\n{text}")]
        reply = await ask(turns, record_tokens, "records")
        if reply.failure is not None:
            return (), (), (), f"{reply.failure.kind}: {reply.failure.message}"
        found = FoundRecords(description_chars)
        found.add(reply.data)
        turns.append(Message("assistant", _said(reply)))
        for done in range(gleaning):
            if _asked_before(reflect, done):
                aside = await ask([*turns, Message("user", missed)], _VERDICT_TOKENS, "reflection", missed_schema())
                if aside.failure is not None or aside.data["missing"] == "no":
                    break
            longer = [*turns, Message("user", more)]
            reply = await ask(longer, gleaning_tokens, "gleaning")
            if reply.failure is not None:
                break
            turns = [*longer, Message("assistant", _said(reply))]
            if not found.add(reply.data):
                break
        entities = found.entities()
        names = [entity.name for entity in entities]
        made: list[ClaimRecord] = []
        if claims and names:
            left = model.window - claim_tokens - prompt_tokens([*about, claims_turn("", names)], model.count)
            shown = cut_to_window(text, left, model.count)
            if shown != text and number not in cut:
                cut.append(number)
            reply = await ask(
                [*about, claims_turn(shown, names)],
                claim_tokens,
                "claims",
                claims_schema(names, max_claims, description_chars),
            )
            rows = [] if reply.failure is not None else [claim_of(row) for row in reply.data["claims"]]
            made = [claim for claim in dict.fromkeys(rows) if claim.description]
        return entities, tuple(found.relations.values()), tuple(made), None

    todo = iter(chunks)
    rows: dict[int, Records] = {}

    async def work() -> None:
        for chunk in todo:
            rows[chunk.id] = await one(chunk.id, chunk.text)

    # as many chunks at a time as the model takes calls, so that a chunk's rounds come right behind each other, while the
    # runtime still has what they share
    await together(work() for _ in range(min(len(chunks), model.concurrency)))
    made = [rows[chunk.id] for chunk in chunks]
    failed = {number: reason for number, (*_, reason) in enumerate(made) if reason is not None}
    claimed = tuple(row[2] for row in made) if claims else ()
    return RichExtraction(tuple(row[0] for row in made), tuple(row[1] for row in made), failed, len(cut), claimed)


def _said(reply: Reply) -> str:
    """Return a reply as the chat goes on from it; one that was cut off, without its broken end."""
    return json.dumps(reply.data, ensure_ascii=False) if reply.truncated else reply.text
