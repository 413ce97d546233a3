"""Agent over nodes: the model scores what lies at the other end of the chosen relationships (ToG, DALK)."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel, Request
from graphrag_bench.llm.estimate import NAME_TOKENS, Calls, Scale
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Frontier, Reach
from graphrag_bench.registry import operator
from operators._asking import (
    STAGE,
    ask_rows,
    bullets,
    listed,
    prompts,
    reckoned,
    room,
    rows_to_do,
    scored,
    shares,
    turns,
)
from operators._relations import Origin, drawn, ends_of, relation_text

_NOT_AS_ASKED = ("schema", "truncated")
_SHOWN = 20  # candidates of a call


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a relation chosen; where none was, as at a start, a call an entity, which then is shown all its facts."""
    shown, width = _SHOWN * NAME_TOKENS, settings["width"]
    return reckoned("candidates", scale, settings, scale.inputs["chosen"], shown, 15 * width, width=str(width))


@operator(
    "node.agent",
    needs=("node.name", "relationship.name|relationship.description"),
    prompts=prompts("candidates"),
    calls=calls,
)
async def agent(
    graph: Graph,
    questions: Questions,
    model: ChatModel,
    chosen: Frontier,
    candidates: Nodes | None = None,
    *,
    width: int = 3,
    sample_above: int = 20,
    sample: int = 5,
    seed: int = 0,
    max_tokens: int = 160,
) -> Frontier:
    """Walk the chosen relationships to the ``width`` ends that help most: one call an entity and relation.

    The model names the best ``width`` candidates of a relation and scores them (ToG asks it to score every one; no more of a
    relation could survive its pruning). A candidate scores its share of these scores times the relation's score; what
    scores 0 is dropped. Of a relation with ``sample_above`` candidates or more, ``sample`` are drawn; a single one keeps the
    relation's score, unasked. A reply whose scores do not fit the candidates gives all the same share, as ToG has it; one
    lost otherwise leaves out its relation, and a question that loses all its replies so has failed.

    An item that has chosen no relationship, as `frontier.start` makes them, stands for all facts of its node: its
    candidates are these facts, shown in one call (DALK's choice among the neighbours of the linked entities).

    Args:
        graph: the graph.
        questions: the batch.
        model: who scores.
        chosen: relationships to follow, with their relations' scores.
        candidates: the nodes that may be reached; any if not wired.
        width: items kept a question, over all its entities and relations.
        sample_above: candidates from which a sample is drawn.
        sample: how many are drawn.
        seed: of the drawing, together with the question's id, the entity and the relation.
        max_tokens: room for a reply.

    Returns:
        The items reached, best first.
    """
    rows: list[list[Reach]] = [[] for _ in range(len(questions))]
    calls: list[tuple[int, Request]] = []
    offered: list[dict[str, Reach]] = []
    for row in rows_to_do(len(questions), questions, chosen, candidates):
        allowed = None if candidates is None else set(candidates.row(row).ids.tolist())
        for origin, ends in ends_of(graph, chosen.row(row), allowed).items():
            if len(ends) >= sample_above:
                ends = drawn(ends, sample, f"{seed}\0{questions.ids[row]}\0{origin}")
            if len(ends) == 1:
                rows[row] += ends
            elif ends:
                of = _texts(graph, origin, ends)
                entity, question = _asked(graph, origin), f"Question: {questions.texts[row]}"
                left = room(model, turns("candidates", entity, "Candidates:\n", question, width=str(width)), max_tokens)
                lines = listed(list(of), left, model)
                asked = turns("candidates", entity, bullets("Candidates", lines), question, width=str(width))
                schema = scored(lines, width)
                calls.append((row, Request(asked, max_tokens, STAGE, "candidates", questions.ids[row], schema)))
                offered.append({text: of[text] for text in lines})
    replies, failed = await ask_rows(model, calls)
    for (row, _), reply, of in zip(calls, replies, offered, strict=True):
        scores = {} if reply.failure else shares(reply.data)
        if reply.failure and reply.failure.kind in _NOT_AS_ASKED:
            scores = dict.fromkeys(of, 1 / len(of))
        rows[row] += [of[text]._replace(score=of[text].score * share) for text, share in scores.items()]
    best = [Frontier([[item for item in row if item.score > 0]]).row(0)[:width] for row in rows]
    return Frontier(best, {row: reason for row, reason in failed.items() if not rows[row]})


def _asked(graph: Graph, origin: Origin) -> str:
    node, label, direction = origin
    entity = f"Entity: {graph.names([node])[0]}"
    return f"{entity}\nRelation: {relation_text((direction, label))}" if direction else entity


def _texts(graph: Graph, origin: Origin, ends: list[Reach]) -> dict[str, Reach]:
    """Return the candidates by their names, or as facts where no relation was chosen; the first of equal texts stays."""
    found: dict[str, Reach] = {}
    for end, name in zip(ends, graph.names([end.node for end in ends]), strict=True):
        found.setdefault(
            name if origin[2] else relation_text((end.direction, graph.label(end.relationship)), name), end
        )
    return found
