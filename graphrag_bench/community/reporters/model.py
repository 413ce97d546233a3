"""Community reports by a model, from the finest level up (GraphRAG, section 3.1.4 of its paper)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphrag_bench.community.elements import Elements
from graphrag_bench.community.packing import Packed, pack
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import ReportRows, Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.llm.window import prompt_tokens
from graphrag_bench.prompts import prompt, prompt_hash, render
from graphrag_bench.registry import register

_HERE = "graphrag_bench.community"
_LOWEST, _HIGHEST = 0.0, 10.0
_LEAST_ROOM = 64  # tokens of a community that are worth a call
_SHORT = 160  # letters of a title
Report = dict[str, Any]  # the arguments of ReportRows.add


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a community; a prompt tells its members and their share of the relationships, as far as it has room."""
    count = max(scale.communities, 1)
    facts = scale.relationships / max(scale.nodes, 1)
    told = (
        (scale.memberships or scale.nodes) / count * (scale.node_tokens * scale.described + facts * scale.fact_tokens)
    )
    fixed = prompt_of(*_turns("", settings["max_findings"]))
    prompt_tokens = fixed + min(told, settings["input_tokens"], scale.window)
    reply = min(scale.report_tokens, settings["report_tokens"])
    return Calls.each(scale.communities, prompt_tokens, reply, "" if scale.measured else "about")


@register("reporter", "model", spends=True, prompts=prompt_hash(_HERE, "system", "report"), calls=calls)
async def by_model(
    graph: Graph,
    model: ChatModel,
    written: Reports | None = None,
    *,
    input_tokens: int = 8000,
    report_tokens: int = 600,
    max_findings: int = 5,
    kinds: Kinds = FACTS,
) -> Reports:
    """Ask for a report on each community: title, summary, rating from 0 to 10 and its reason, findings.

    The finest level first, since a community too large for the prompt is told by the reports on its parts; the calls of
    a level run together. A rating that is no number from 0 to 10 is left out, and the reason says what the model wrote.
    Where a call fails the community has no report, says why, and its parent is told its elements.

    Args:
        graph: with its communities.
        model: who writes.
        written: the reports on the last communities, from an earlier call: they are kept and not asked for again.
        input_tokens: tokens of a community at most, where the window leaves as much (GraphRAG: 8,000).
        report_tokens: room for a reply; one cut there keeps its complete findings (GraphRAG: 2,000).
        max_findings: findings a report at most; the schema says so.
        kinds: the kinds of relationship that are told, best those the communities were made of.

    Raises:
        UserError: The model's window leaves no room for a community.
    """
    hierarchy = graph.communities
    room = min(input_tokens, _room(model, report_tokens, max_findings))
    elements = Elements(graph, kinds=kinds)
    schema = _schema(max_findings, report_tokens)
    made: dict[int, Report] = {}
    cut = 0
    if written is not None:
        cut = written.cut
        made.update(enumerate(written.rows(), start=len(hierarchy) - len(written)))
    finest = int(hierarchy.level.max(initial=-1))
    for level in range(finest, -1, -1):
        communities = [number for number in np.flatnonzero(hierarchy.level == level).tolist() if number not in made]
        packed: list[Packed] = []
        for number in communities:
            parts = [part for part in hierarchy.children(number).tolist() if made[part].get("failed") is None]
            texts = {part: str(made[part]["text"]) for part in parts}
            packed.append(pack(elements.lines(number), texts, room, model.count))
        cut += sum(part.cut for part in packed)
        requests = [
            Request(
                _turns(part.text, max_findings),
                report_tokens,
                "reports",
                "report",
                _subject(finest - level, number),
                schema,
            )
            for number, part in zip(communities, packed, strict=True)
        ]
        replies = await model.ask_all(requests)
        made.update((number, _read(reply)) for number, reply in zip(communities, replies, strict=True))
    rows = ReportRows()
    for number in range(len(hierarchy)):
        rows.add(**made[number])
    return rows.reports(cut)


def _subject(height: int, community: int) -> str:
    """Return what the ledger calls a community: by its height too, since numbers change while a hierarchy still grows."""
    return f"community {community}, {height} above the finest" if height else f"community {community}"


def checked_rating(value: Any) -> tuple[float | None, str]:
    """Return a rating from 0 to 10 and no note, or None and what was wrong with it. Nothing is pulled into the range."""
    if isinstance(value, int | float) and not isinstance(value, bool) and _LOWEST <= value <= _HIGHEST:
        return float(value), ""
    return None, f"no number from 0 to 10: {str(value)[:40]}"


def _read(reply: Reply) -> Report:
    if reply.failure is not None:
        return {"failed": f"{reply.failure.kind}: {reply.failure.message}"}
    data: Mapping[str, Any] = reply.data
    title, summary, reason = (" ".join(data[key].split()) for key in ("title", "summary", "rating_reason"))
    findings = [(finding["summary"], finding["explanation"]) for finding in data["findings"]]
    if not title or not summary:
        return {"failed": f"empty: the report has no {'summary' if title else 'title'}"}
    rating, fault = checked_rating(data["rating"])
    text = report_text(title, summary, findings)
    reason = f"[{fault}] {reason}".strip() if fault else reason
    return {"title": title, "summary": summary, "text": text, "rating": rating, "rating_reason": reason}


def report_text(title: str, summary: str, findings: Sequence[tuple[str, str]] = ()) -> str:
    """Return a report as plain text: title, summary, and each finding, once, as a heading and an explanation."""
    tidy = dict.fromkeys((" ".join(heading.split()), " ".join(said.split())) for heading, said in findings)
    blocks = [f"# {title}", summary]
    for heading, said in tidy:
        parts = (f"## {heading}" if heading else "", said if said != heading else "")
        blocks.append("\n".join(part for part in parts if part))
    return "\n\n".join(block for block in blocks if block)


def _turns(community: str, max_findings: int) -> tuple[Message, ...]:
    task = render(_HERE, "report", community=community, max_findings=str(max_findings))
    return (Message("system", prompt(_HERE, "system")), Message("user", task))


def _room(model: ChatModel, report_tokens: int, max_findings: int) -> int:
    room = model.window - report_tokens - prompt_tokens(_turns("", max_findings), model.count)
    if room < _LEAST_ROOM:
        raise UserError(
            f"The model's window of {model.window:,} tokens leaves no room for a community beside report_tokens={report_tokens}.",
            "Make community.report_tokens smaller or llm.window larger.",
        )
    return room


def _schema(max_findings: int, report_tokens: int) -> dict[str, Any]:
    """Return the schema of a reply.

    Findings stand last, so that a reply cut off loses none of the rest; and texts are bounded, since a small model may
    otherwise never come to the end of its summary: the summary to a letter a token, about a quarter of the reply's room.
    """
    longest = max(2 * _SHORT, report_tokens)
    finding = _object({"summary": _text(_SHORT), "explanation": _text(longest // 2)})
    return _object(
        {
            "title": _text(_SHORT),
            "summary": _text(longest),
            "rating": {"type": "number"},  # its range is not the schema's: a report is worth keeping without its rating
            "rating_reason": _text(longest // 2, 0),
            "findings": {"type": "array", "items": finding, "maxItems": max_findings},
        }
    )


def _text(longest: int, shortest: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    required: Sequence[str] = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
