"""The probe: run a plan on a tiny toy graph with a scripted model, in milliseconds, before anything is spent.

It catches what types cannot (an empty union, a missing prompt field, a result of the wrong size), and it is the contract
test that every registered operator and every method passes with no test written for it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.generation.answers import Answer
from graphrag_bench.graph.builders.kg import build
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.answering import answer_batch
from graphrag_bench.pipeline.execute import convert, retrieve
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.plan import Plan
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Nodes, Ranking, Relationships

_TEXTS = (
    "Ada Brown built the Glass Bridge in Norhaven.",
    "The Glass Bridge spans the river Ulm.",
    "Ulm Mill burned in 1901.",
)
_TRIPLES = (
    (("Ada Brown", "built", "Glass Bridge"), ("Glass Bridge", "is in", "Norhaven")),
    (("Glass Bridge", "spans", "Ulm"),),
    (),
)
QUESTIONS = Questions(
    ("p1", "p2", "p3"),
    ("Who built the Glass Bridge?", "Which river does the bridge in Norhaven span?", "zzz qqq?"),
    failed={2: "probe: this question has failed before"},
)


def toy(folder: Path, model: ChatModel) -> dict[type, Any]:
    """Return loans over a corpus of three chunks, one of them without a fact."""
    embedder = HashingEmbedder()
    chunks = toy_chunks()
    graph = build(chunks, Extraction(tuple(() for _ in _TEXTS), _TRIPLES), embedder)
    return {
        Graph: graph,
        ChatModel: model,
        Embedder: embedder,
        NodeVectors: NodeVectors(embedder.embed(graph.nodes["name"].to_pylist()), embedder),
        ChunkVectors: ChunkVectors(embedder.embed(list(_TEXTS)), embedder),
        LexicalIndex: LexicalIndex.build(list(_TEXTS), folder, k1=1.5, b=0.75),
        GivenEntities: GivenEntities({"p1": ("Glass Bridge",), "p2": (), "p3": ("Ulm",)}),
    }


def toy_chunks() -> ChunkTable:
    """Return the probe's chunks."""
    return tuple(Chunk(number, text, "", (f"d{number}",), len(text.split())) for number, text in enumerate(_TEXTS))


async def probe(plan: Plan, lend: Mapping[type, Any]) -> tuple[Answer, ...]:
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
            _contract(plan.name, name, value, lend[Graph])
        return await answer_batch(plan, lend[ChatModel], questions, values, toy_chunks())
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


def _contract(method: str, name: str, value: Any, graph: Graph) -> None:
    def broken(how: str) -> UserError:
        return UserError(
            f"{method}: the result of step {name!r} breaks the contract on the probe: {how}.", "Mend the operator."
        )

    if isinstance(value, Questions):
        if len(value) != len(QUESTIONS):
            raise broken("it has another number of questions than the batch")
        return
    if not isinstance(value, Ranking):
        raise broken(f"it is a {type(value).__name__}")
    sizes = {Nodes: graph.n_nodes, Relationships: graph.n_relationships, Chunks: graph.n_chunks}
    if value.size != len(QUESTIONS):
        raise broken(f"it has {value.size} rows for {len(QUESTIONS)} questions")
    if 2 not in value.failed:
        raise broken("a question that had failed is no longer marked so")
    for row in value:
        if len(row.ids) and (row.ids.min() < 0 or row.ids.max() >= sizes.get(type(value), np.inf)):
            raise broken("an id lies outside the graph")
        if not np.isfinite(row.scores).all():
            raise broken("a score is not finite")
        if len(row.ids) > 1 and not (np.lexsort((row.ids, -row.scores)) == np.arange(len(row.ids))).all():
            raise broken("a row is not sorted best first, ties by rising id")
