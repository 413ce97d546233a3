"""The knowledge graph: entity names, named relations between them, and synonym edges (HippoRAG, G-retriever, ToG, DALK)."""

from typing import Literal

import numpy as np
import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.graph.graph import Graph, incidence_of
from graphrag_bench.graph.synonyms import phrase_key, synonyms
from graphrag_bench.registry import register

_SYNONYM = "synonym of"


@register("builder", "kg", version=2, provides=("node.name", "relationship.name", "relationship.weight"))
def build(
    chunks: ChunkTable,
    extraction: Extraction,
    embedder: Embedder,
    *,
    nodes: Literal["triples", "all"] = "triples",
    synonym_threshold: float | None = 0.8,
    synonym_top_k: int = 100,
) -> Graph:
    """Build the graph of the extracted triples.

    A node is a phrase up to case and punctuation; its name is the first spelling met. A relationship is a distinct
    (subject, relation, object); its weight counts the chunks that state it. Synonym edges join nodes whose names' cosine
    reaches the threshold and have more than two letters or digits (HippoRAG's rule); their weight is the cosine.

    Args:
        chunks: the corpus.
        extraction: entities and triples by chunk.
        embedder: embeds node names for synonym edges.
        nodes: only the phrases of triples, as HippoRAG has it, or every extracted entity as well.
        synonym_threshold: cosine from which two names are synonyms; null for no synonym edges.
        synonym_top_k: synonyms a node at most, its nearest.
    """
    ids: dict[str, int] = {}
    names: list[str] = []
    facts: dict[tuple[int, str, int], int] = {}
    relations: list[str] = []
    in_chunk: list[tuple[int, int]] = []
    stated: list[tuple[int, int]] = []

    def node(name: str) -> int:
        key = phrase_key(name)
        if key not in ids:
            ids[key] = len(names)
            names.append(name)
        return ids[key]

    for chunk, (entities, triples) in enumerate(zip(extraction.entities, extraction.triples, strict=True)):
        for subject, relation, object_ in triples:
            if not phrase_key(subject) or not phrase_key(object_):
                continue
            ends = node(subject), node(object_)
            fact = (ends[0], phrase_key(relation) or relation, ends[1])
            if fact not in facts:
                facts[fact] = len(facts)
                relations.append(relation)
            stated.append((facts[fact], chunk))
            in_chunk.extend((end, chunk) for end in ends)
        if nodes == "all":
            in_chunk.extend((node(name), chunk) for name in entities if phrase_key(name))

    stated_in = incidence_of(stated, (len(facts), len(chunks)))
    source = np.fromiter((fact[0] for fact in facts), np.int64, len(facts))
    target = np.fromiter((fact[2] for fact in facts), np.int64, len(facts))
    weight = np.asarray(stated_in.sum(axis=1), dtype=np.float64).ravel()
    left, right, cosine = synonyms(names, embedder, synonym_threshold, synonym_top_k)
    count = len(left)
    relationships = pa.table(
        {
            "source": pa.array(np.concatenate([source, left]), pa.int32()),
            "target": pa.array(np.concatenate([target, right]), pa.int32()),
            "kind": pa.array(["fact"] * len(facts) + ["synonym"] * count, pa.string()),
            "name": pa.array(relations + [_SYNONYM] * count, pa.string()),
            "weight": pa.array(np.concatenate([weight, cosine]), pa.float32()),
        }
    )
    return Graph(
        nodes=pa.table({"name": pa.array(names, pa.string())}),
        relationships=relationships,
        node_chunk=incidence_of(in_chunk, (len(names), len(chunks))),
        relationship_chunk=incidence_of(stated, (len(facts) + count, len(chunks))),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )
