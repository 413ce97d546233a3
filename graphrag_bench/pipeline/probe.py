"""The probe: run a plan on a tiny toy graph with a scripted model, in milliseconds, before anything is spent.

It catches what types cannot (an empty union, a missing prompt field, a result of the wrong size), and it is the contract
test that every registered operator and every method passes with no test written for it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.generation.answers import Answer
from graphrag_bench.generation.shelf import Shelf
from graphrag_bench.graph.graph import Graph
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.answering import answer_batch, retrieved_documents
from graphrag_bench.pipeline.execute import convert, retrieve
from graphrag_bench.pipeline.method import Plan
from graphrag_bench.pipeline.texts import Questions, Texts, Truths
from graphrag_bench.pipeline.toy import QUESTIONS
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Ranking, Relationships
from graphrag_bench.pipeline.walks import Frontier, Subgraphs


async def probe(plan: Plan, lend: Mapping[Any, Any]) -> tuple[Answer, ...]:
    """Run the plan on the toy; raise UserError saying which part broke its contract.

    Args:
        plan: what to run.
        lend: what `toy` returned.
    """
    try:
        questions = await convert(plan, lend, QUESTIONS)
        values = await retrieve(plan, lend, questions)
        for name, value in values.items():
            _served(plan.name, name, value)
            if fault := _broken(value, lend[Graph]):
                raise UserError(
                    f"{plan.name}: the result of step {name!r} breaks the contract on the probe: {fault}.",
                    "Mend the operator.",
                )
        shelf = Shelf(lend[ChunkTable], lend[Graph])
        for number in range(len(questions)):
            retrieved_documents(plan, values, number, shelf, 20)
        return await answer_batch(plan, lend[ChatModel], questions, values, shelf)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{plan.name} broke on the probe, a toy graph with a scripted model: {type(error).__name__}: {error}.",
            f"Its chain is {plan.line()}.",
        ) from error


def _served(method: str, name: str, value: Any) -> None:
    """Raise where an operator could not serve the probe's batch: with these settings it will serve no other either."""
    for reason in value.failed.values():
        if reason.startswith("operator: "):
            said = reason.removeprefix("operator: ")
            raise UserError(f"{method}: step {name!r} cannot serve the probe: {said}.", "Correct its settings.")


def _broken(value: Any, graph: Graph) -> str:
    """Return how a value breaks its contract, or an empty text."""
    if not isinstance(value, Ranking | Questions | Subgraphs | Frontier | Texts | Truths):
        return f"it is a {type(value).__name__}"
    if isinstance(value, Questions) and value.size != len(QUESTIONS):
        return "it has another number of questions than the batch"
    if value.size != len(QUESTIONS):
        return f"it has {value.size} rows for {len(QUESTIONS)} questions"
    if 2 not in value.failed:
        return "a question that had failed is no longer marked so"
    if isinstance(value, Ranking):
        return _bad_ranking(value, graph)
    if isinstance(value, Subgraphs | Frontier):
        return _bad_walk(value, graph)
    return ""


def _bad_ranking(value: Ranking, graph: Graph) -> str:
    sizes: dict[type, int] = {
        Nodes: graph.n_nodes,
        Relationships: graph.n_relationships,
        Chunks: graph.n_chunks,
        Communities: graph.n_communities,
    }
    for row in value:
        if len(row.ids) and (row.ids.min() < 0 or row.ids.max() >= sizes[type(value)]):
            return "an id lies outside the graph"
        if not np.isfinite(row.scores).all():
            return "a score is not finite"
        if len(row.ids) > 1 and not (np.lexsort((row.ids, -row.scores)) == np.arange(len(row.ids))).all():
            return "a row is not sorted best first, ties by rising id"
    return ""


def _bad_walk(value: Subgraphs | Frontier, graph: Graph) -> str:
    paths = [path for row in value.rows for path in row] if isinstance(value, Subgraphs) else []
    reached = [item for row in value.rows for item in row] if isinstance(value, Frontier) else []
    nodes = [n for path in paths for n in path.nodes] + [item.node for item in reached]
    walked = [r for path in paths for r in path.relationships] + [item.relationship for item in reached]
    if not all(0 <= node < graph.n_nodes for node in nodes):
        return "a node lies outside the graph"
    if not all(-1 <= relationship < graph.n_relationships for relationship in walked):
        return "a relationship lies outside the graph"
    if not np.isfinite([*(path.score for path in paths), *(item.score for item in reached)]).all():
        return "a score is not finite"
    if any(len(path.directions) != len(path.relationships) for path in paths):
        return "a path has another number of directions than relationships"
    return ""
