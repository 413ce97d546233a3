"""Graphs of described entities and relations: what the builders tkg and rkg share (Table 2: TKG, and RKG with keywords)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.extraction import RichExtraction
from graphrag_bench.graph.graph import Graph, incidence_of
from graphrag_bench.graph.matching import soft_matches
from graphrag_bench.graph.records import Options, Records, spellings
from graphrag_bench.graph.summaries import Summaries
from graphrag_bench.graph.synonyms import synonyms
from graphrag_bench.llm.base import ChatModel

TKG = ("node.name", "node.type", "node.description", "relationship.description", "relationship.weight")
RKG = (*TKG, "relationship.keywords")
_SYNONYM = "synonym of"


async def build_described(
    chunks: ChunkTable,
    extraction: RichExtraction,
    embedder: Embedder,
    model: ChatModel | None,
    options: Options,
    provides: Sequence[str],
) -> Built:
    """Build the graph of a described extraction, with keywords where ``provides`` says so.

    Raises:
        UserError: The extraction has no description (or keywords) at all, and the options do not say to make them; or
            merging wants a model and none is there.
    """
    import asyncio

    if options.merge == "model" and model is None:
        raise UserError(
            "graph.merge=model wants a model to merge long descriptions, and there is none.", "Set graph.merge=cut."
        )
    read_as: dict[str, str] = {}
    if options.match == "soft":
        first, met = spellings(extraction)
        found = await asyncio.to_thread(
            soft_matches, first, met, embedder, options.match_cosine, options.match_spelling
        )
        read_as = {key: first[other] for key, other in found.items()}
    records = Records(options, read_as)
    records.add(extraction)
    _check(records, "relationship.keywords" in provides)
    if options.describe == "name+triples":
        records.describe()
    summaries = Summaries(
        model if options.merge == "model" else None, options.summary_threshold, options.summary_tokens
    )
    nodes, relations = records.nodes, records.relations
    names = [node.name for node in nodes]
    described = await summaries.shorten(names, [list(node.descriptions.values()) for node in nodes])
    stated = await summaries.shorten(
        [f"{names[relation.source]} – {names[relation.target]}" for relation in relations],
        [list(relation.descriptions.values()) for relation in relations],
    )
    left, right, cosine = await asyncio.to_thread(
        synonyms, names, embedder, options.synonym_threshold, options.synonym_top_k
    )
    more = len(left)
    columns: dict[str, Any] = {
        "source": pa.array(np.concatenate([np.array([r.source for r in relations], np.int64), left]), pa.int32()),
        "target": pa.array(np.concatenate([np.array([r.target for r in relations], np.int64), right]), pa.int32()),
        "kind": pa.array(["fact"] * len(relations) + ["synonym"] * more, pa.string()),
        "name": pa.array([", ".join(r.names.values()) for r in relations] + [_SYNONYM] * more, pa.string()),
        "weight": pa.array(np.concatenate([np.array([r.weight for r in relations], float), cosine]), pa.float32()),
        "description": pa.array(stated + [""] * more, pa.string()),
    }
    if "relationship.keywords" in provides:
        rows = [", ".join(relation.keywords.values()) for relation in relations]
        columns["keywords"] = pa.array(rows + [""] * more, pa.string())
    graph = Graph(
        nodes=pa.table(
            {
                "name": pa.array(names, pa.string()),
                "type": pa.array([_most(node.types) for node in nodes], pa.string()),
                "description": pa.array(described, pa.string()),
            }
        ),
        relationships=pa.table(columns),
        node_chunk=incidence_of(records.in_chunk, (len(nodes), len(chunks))),
        relationship_chunk=incidence_of(records.stated, (len(relations) + more, len(chunks))),
        attributes=frozenset(provides),
        claims=records.claims.table() if extraction.claims else None,
    )
    facts = _facts(described, stated, summaries)
    if options.match == "soft":
        facts["names_read_as_another"] = len(read_as)
    if extraction.claims:
        facts["claims_without_subject"] = records.claims.homeless
    return Built(graph, facts, summaries.failed)


def _check(records: Records, keywords: bool) -> None:
    made = records.options.describe == "name+triples"
    if not made and records.nodes and not any(node.descriptions for node in records.nodes):
        raise UserError(
            "No entity of the extraction has a description, which this graph wants.",
            "Use graph.extractor=described, or graph.describe=name+triples to make descriptions of names and triples.",
        )
    if keywords and records.relations and not any(relation.keywords for relation in records.relations):
        raise UserError(
            "No relation of the extraction has keywords, which an rkg wants.",
            "Set graph.keywords=true with graph.extractor=described, or graph.describe=name+triples with a predicate's words.",
        )


def _facts(described: Sequence[str], stated: Sequence[str], summaries: Summaries) -> dict[str, Any]:
    kinds = Counter(reason.split(":")[0] for reason in summaries.failed.values())
    return {
        "described_nodes": sum(map(bool, described)),
        "described_relationships": sum(map(bool, stated)),
        "merges": summaries.asked,
        "failed": dict(kinds),
        "cut": summaries.cut,
        "cut_prompts": summaries.cut_prompts,
    }


def _most(types: Counter[str]) -> str:
    """Return the most frequent type, of equals the first met; empty where none is known."""
    return max(types, key=lambda kind: types[kind], default="")
