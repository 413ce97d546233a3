"""The aligned knowledge graph: concepts read off names or said by a model, and the is_a edges to them."""

import asyncio
import json

import numpy as np
import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders import kg
from graphrag_bench.graph.builders.kg_aligned import build
from graphrag_bench.graph.concepts import by_heads
from graphrag_bench.graph.extraction import Extraction
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.service import Chat

TRIPLES = (
    (
        ("Rice University", "is in", "Houston"),
        ("University of Ulm", "is", "university"),
        ("university", "teaches", "Ada Brown"),
    ),
    (("Ada Brown", "paints", "Brown"), ("Brown", "is", "colour")),
)
CHUNKS = tuple(Chunk(n, "text", "", (f"d{n}",), 1) for n in range(2))
GIVEN = Extraction(((), ()), TRIPLES)


def made(model=None, **settings):
    return asyncio.run(build(CHUNKS, GIVEN, HashingEmbedder(), model, synonym_threshold=None, **settings))


@pytest.mark.parametrize(("names", "concepts"), [
    (["Rice University", "university"], {0: "university"}),
    (["University of Oxford", "University", "oxford"], {}),  # "University" is spelled as a name
    (["Institute of Physics", "institute", "physics"], {0: "institute"}),
    (["film director", "director", "Old Film Director"], {0: "director", 2: "film director"}),
    (["Ada Brown", "Brown"], {}),
    (["of", "town of", ""], {}),
])  # fmt: skip
def test_a_concept_is_the_head_of_a_name_where_that_is_a_common_noun(names, concepts):
    assert by_heads(names).of == concepts


def names_of(graph, kind):
    ids = graph.of_kinds([kind])
    return list(zip(graph.names(graph.sources[ids]), graph.names(graph.targets[ids]), strict=True))


def test_is_a_edges_stand_beside_the_graph_of_kg():
    plain = kg.build(CHUNKS, GIVEN, HashingEmbedder(), synonym_threshold=None)
    found = made(concepts="heads", is_a_weight=0.5)
    graph, more = found.graph, found.graph.n_relationships - plain.n_relationships
    assert names_of(graph, "is_a") == [("Rice University", "university")]  # Ulm's is stated as a fact already
    assert found.facts == {"names_with_concept": 2, "concept_calls": 0} and more == 1
    assert graph.relationships.slice(0, plain.n_relationships).equals(plain.relationships)
    assert graph.weights[-1] == 0.5 and graph.label(graph.n_relationships - 1) == "is a"
    assert (graph.node_chunk.toarray() == plain.node_chunk.toarray()).all()
    assert graph.relationship_chunk.shape == (graph.n_relationships, 2) and not graph.relationship_chunk[[-1]].nnz
    assert made(concepts="none").graph.relationships.equals(plain.relationships)


def scripted(answer):
    asked = []

    def reply(messages, schema):
        asked.append(messages[-1].text)
        return json.dumps(answer(schema))

    model = Chat(Scripted.of(reply), attempts=1)
    return model, asked


def test_a_model_says_what_names_are(tmp_path):
    kinds = {"Houston": "city", "Rice University": "University", "Brown": "brown"}

    def answer(schema):
        names = schema["properties"]["kinds"]["items"]["properties"]["name"]["enum"]
        return {"kinds": [{"name": name, "kind": kinds[name]} for name in names if name in kinds]}

    model, asked = scripted(answer)
    found = made(model, concepts="model", names_a_call=3)
    graph = found.graph
    assert sorted(names_of(graph, "is_a")) == [("Houston", "city"), ("Rice University", "university")]
    assert graph.names([graph.n_nodes - 1]) == ["city"] and not graph.node_chunk[[-1]].nnz
    assert graph.node_chunk.shape[0] == graph.n_nodes and not found.failed
    assert len(asked) == found.facts["concept_calls"] == -(-(graph.n_nodes - 1) // 3)
    assert "- Rice University\n- Houston\n" in asked[0]
    graph.save(tmp_path)
    assert np.array_equal(type(graph).open(tmp_path).kinds, graph.kinds)


def test_a_lost_reply_costs_its_names_their_concepts():
    model, _ = scripted(lambda schema: {"kinds": "none"})
    found = made(model, concepts="model", names_a_call=100)
    assert not names_of(found.graph, "is_a")
    ((subject, reason),) = found.failed.items()
    assert subject.startswith("names 0 to ") and reason.startswith("schema")
