"""The knowledge graph with its names aligned: synonym edges, and is_a edges to the concepts they are instances of (KAG)."""

import asyncio
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
from scipy import sparse

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.builders import kg
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.concepts import PROMPTS, Concepts, by_heads, by_model, concept_calls
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.synonyms import phrase_key
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.registry import register

_IS_A = "is a"


@register(
    "builder",
    "kg_aligned",
    provides=("node.name", "relationship.name", "relationship.weight"),
    prompts=PROMPTS,
    spends=lambda settings: settings["concepts"] == "model",
    calls=concept_calls,
)
async def build(
    chunks: ChunkTable,
    extraction: Extraction,
    embedder: Embedder,
    model: ChatModel | None,
    *,
    nodes: Literal["triples", "all"] = "triples",
    synonym_threshold: float | None = 0.8,
    synonym_top_k: int = 100,
    concepts: Literal["model", "heads", "none"] = "model",
    is_a_weight: float = 1.0,
    names_a_call: int = 16,
    concept_tokens: int = 320,
) -> Built:
    """Build the graph of the builder `kg`, and join each name to what it is.

    A concept that is no node yet becomes one, in no chunk. Where a fact or a synonym edge joins the two already, no is_a
    edge is added.

    Args:
        chunks: the corpus.
        extraction: entities and triples by chunk.
        embedder: embeds node names for synonym edges.
        model: says what each name is; not asked unless concepts=model.
        nodes: only the phrases of triples, or every extracted entity as well.
        synonym_threshold: cosine from which two names are synonyms; null for no synonym edges.
        synonym_top_k: synonyms a node at most, its nearest.
        concepts: found by the model, by the head of the name (see `by_heads`), or none.
        is_a_weight: what an is_a edge weighs; a fact stated in one chunk weighs 1.
        names_a_call: names that the model reads at once.
        concept_tokens: room for its reply.
    """
    graph = await asyncio.to_thread(
        kg.build,
        chunks,
        extraction,
        embedder,
        nodes=nodes,
        synonym_threshold=synonym_threshold,
        synonym_top_k=synonym_top_k,
    )
    names = graph.column("nodes", "name")
    if concepts == "model" and model is not None:
        found = await by_model(names, model, names_a_call, concept_tokens)
    else:
        found = by_heads(names) if concepts == "heads" else Concepts()
    facts = {"names_with_concept": len(found.of), "concept_calls": found.asked}
    return Built(_aligned(graph, found.of, is_a_weight), facts, found.failed)


def _aligned(graph: Graph, concept_of: dict[int, str], weight: float) -> Graph:
    names = list(graph.column("nodes", "name"))
    ids = {phrase_key(name): node for node, name in enumerate(names)}
    joined = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    pairs: list[tuple[int, int]] = []
    for node, concept in concept_of.items():
        target = ids.setdefault(phrase_key(concept), len(names))
        if target == len(names):
            names.append(concept)
        if (node, target) not in joined and (target, node) not in joined:
            joined.add((node, target))
            pairs.append((node, target))
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    edges = pa.table(
        {
            "source": pa.array(ends[:, 0], pa.int32()),
            "target": pa.array(ends[:, 1], pa.int32()),
            "kind": pa.array(["is_a"] * len(pairs), pa.string()),
            "name": pa.array([_IS_A] * len(pairs), pa.string()),
            "weight": pa.array([weight] * len(pairs), pa.float32()),
        }
    )
    return replace(
        graph,
        nodes=pa.table({"name": pa.array(names, pa.string())}),
        relationships=pa.concat_tables([graph.relationships, edges]),
        node_chunk=_taller(graph.node_chunk, len(names)),
        relationship_chunk=_taller(graph.relationship_chunk, graph.n_relationships + len(pairs)),
    )


def _taller(incidence: sparse.csr_array, rows: int) -> sparse.csr_array:
    """Return an incidence with empty rows below its own, so that it has ``rows`` in all."""
    indptr = np.pad(incidence.indptr, (0, rows - incidence.shape[0]), mode="edge")
    return sparse.csr_array((incidence.data, incidence.indices, indptr), shape=(rows, incidence.shape[1]))
