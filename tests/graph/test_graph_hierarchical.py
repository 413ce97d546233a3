"""HiRAG's index: layers, the stop rule, links to all members, names, failures, and what the model is told."""

import asyncio
from itertools import pairwise

import numpy as np
import pytest

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.graph_quality import sparsity_by_layer
from graphrag_bench.graph.builders import hierarchical, tkg
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.graph.hierarchical.clustering import OneMixture
from graphrag_bench.graph.hierarchical.layers import Shape, grow
from graphrag_bench.graph.hierarchical.summaries import Group, Written, by_extracts, by_model, line, most_of
from graphrag_bench.graph.tree.mixture import Mixture
from graphrag_bench.llm.base import Failure, Reply

E = EntityRecord
OPEN = Shape(max_change=0.0, max_sparsity=None, max_layers=9, stop_size=1, max_cluster_tokens=None, max_depth=3)
EMBEDDER = HashingEmbedder()


def by_size(size):
    """Cluster neighbours in order, so many together."""
    return lambda vectors: [np.arange(at, min(at + size, len(vectors))) for at in range(0, len(vectors), size)]


def writer(entities=1, failing=()):
    """Write so many summaries a cluster; clusters whose subject is listed fail."""

    async def summarise(groups):
        return [
            Written((), "refused: no")
            if group.subject in failing
            else Written(
                tuple(E(f"{group.members[0].name} sum", "topic", f"About {group.subject}.") for _ in range(entities))
            )
            for group in groups
        ]

    return summarise


def grown(count, step, summarise=None, shape=OPEN):
    entities = [E(f"n{i}", "", f"Thing {i} of many.") for i in range(count)]
    return asyncio.run(grow(entities, EMBEDDER, step, summarise or writer(), shape))


def test_layers_go_on_to_the_top_and_every_member_is_linked():
    made = grown(8, by_size(2))
    assert made.layer == [0] * 8 + [1] * 4 + [2] * 2 + [3]
    assert made.members[:8] == [(8 + at // 2, at) for at in range(8)]
    assert made.members[-2:] == [(14, 12), (14, 13)]
    assert made.account()["sparsity"] == pytest.approx([1 - 8 / 56, 1 - 4 / 12, 0.0], abs=1e-6)
    assert made.stopped.startswith("stop_size")


def test_a_node_alone_in_its_cluster_is_passed_up():
    made = grown(3, by_size(2))
    # 2 goes on as itself, and is a member of the summary of layer 2
    assert made.layer == [0, 0, 0, 1, 2]
    assert made.members == [(3, 0), (3, 1), (4, 2), (4, 3)]
    assert [fact["passed_up"] for fact in made.facts] == [1, 0]


def test_the_stop_rule_compares_with_the_layer_before():
    halves = [1 - 16 * 2 / (32 * 31), 1 - 8 * 2 / (16 * 15), 1 - 4 * 2 / (8 * 7), 1 - 2 * 2 / (4 * 3)]
    changes = [abs(b - a) / a for a, b in pairwise(halves)]
    assert changes[0] < changes[1] < 0.09 < changes[2]
    late = grown(32, by_size(2), shape=OPEN.__class__(0.05, None, 50, 2, None, 5))
    assert [fact["nodes"] for fact in late.facts] == [32, 16]  # the second layer is clustered, and not summed up
    assert max(late.layer) == 1
    assert late.stopped.startswith("max_change")
    assert late.account()["sparsity_change"] == [None, pytest.approx(changes[0], abs=1e-6)]
    never = grown(32, by_size(2))
    assert max(never.layer) == 5


def test_the_code_s_second_rule_is_a_setting():
    made = grown(32, by_size(2), shape=OPEN.__class__(0.0, 0.96, 50, 2, None, 5))
    assert made.layer == [0] * 32 and made.members == []
    assert made.stopped.startswith("max_sparsity")


def test_other_ends_are_told():
    assert grown(4, by_size(1)).stopped == "no cluster of two or more"
    assert grown(1, by_size(2)).stopped.startswith("stop_size")
    assert grown(8, by_size(2), shape=OPEN.__class__(0.0, None, 1, 1, None, 5)).stopped.startswith("max_layers: 1")
    assert grown(4, by_size(2), writer(entities=2)).stopped.startswith("no smaller")


def test_names_are_told_apart():
    made = grown(4, by_size(4), writer(entities=3))
    names = [entity.name for entity in made.entities]
    assert names[4:7] == ["n0 sum", "n0 sum (layer 1)", "n0 sum (layer 1, 2)"]
    assert len(set(names)) == len(names)


def test_members_of_a_failed_cluster_go_on_as_themselves():
    made = grown(4, by_size(2), writer(failing={"layer 1 cluster 0"}))
    assert made.failed == {"layer 1 cluster 0": "refused: no"}
    assert (4, 2) in made.members and (4, 0) not in made.members
    assert [fact["nodes"] for fact in made.facts][:2] == [4, 3]


def test_nothing_but_failures_is_an_error():
    with pytest.raises(UserError, match="None of the 2 clusters"):
        grown(4, by_size(2), writer(failing={"layer 1 cluster 0", "layer 1 cluster 1"}))


def test_extracts_name_the_central_member_and_say_first_sentences():
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    members = (E("Ulm", "river", "Ulm is a river. It is long."), E("Mill", "", "A mill on the Ulm."), E("Bare"))
    (written,) = asyncio.run(by_extracts(load_tokenizer("regex"), 50)([Group("s", members, vectors)]))
    assert written.entities == (E("Mill and 2 more", "river", "A mill on the Ulm. Ulm is a river. Bare."),)
    (short,) = asyncio.run(by_extracts(load_tokenizer("regex"), 7)([Group("s", members, vectors)]))
    assert short.entities[0].description.startswith("A mill on the Ulm.")
    assert "river" not in short.entities[0].description


class Model:
    """Answers with what it is given; a token is a word."""

    concurrency = 4

    def __init__(self, data=None, failure=None, window=4000):
        self.data, self.failure, self.window, self.requests = data, failure, window, []

    def count(self, text):
        return len(text.split())

    async def ask_all(self, requests):
        self.requests += requests
        return [Reply("", self.data, 9, 9, 0.0, failure=self.failure) for _ in requests]


def asked(model, members, **settings):
    options = {"meta_types": ["person"], "max_summaries": 3, "summary_tokens": 20, "description_chars": 200, **settings}
    group = Group("layer 1 cluster 0", members, np.eye(len(members)))
    return asyncio.run(by_model(model, **options)([group]))[0]


def test_the_model_is_told_the_meta_types_and_every_member():
    record = {"name": " The  makers ", "type": "person", "description": "They make."}
    model = Model({"entities": [record, {**record, "name": "the makers"}]})
    members = tuple(E(f"n{i}", "", f"Says {i}.") for i in range(4))
    written = asked(model, members)
    assert written == Written((E("The makers", "person", "They make."),))
    (request,) = model.requests
    assert "person, other" in request.messages[0].text
    assert request.messages[-1].text.splitlines()[:4] == [line(member) for member in members]
    assert request.messages[-1].text.splitlines()[-1].startswith("Write the broader entities")
    assert (request.stage, request.subject, request.max_tokens) == ("graph", "layer 1 cluster 0", 60)
    entities = request.schema["properties"]["entities"]
    assert entities["maxItems"] == most_of(4, 3) == 2
    assert entities["items"]["properties"]["type"]["enum"] == ["person", "other"]


def test_bad_replies_fail_and_long_clusters_are_cut():
    members = tuple(E(f"n{i}", "", "word " * 120) for i in range(4))
    assert asked(Model(failure=Failure("timeout", "late")), members).failure == "timeout: late"
    assert asked(Model({"entities": [{"name": " ", "type": "other", "description": "x"}]}), members).failure
    small = Model({"entities": [{"name": "a", "type": "other", "description": "b"}]}, window=400)
    assert asked(small, members).cut
    with pytest.raises(UserError, match="window"):
        asked(Model(window=120), members)


def corpus(count):
    chunks = tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(count))
    topics = ("river bridge water", "music opera singer", "planet star orbit")
    entities = tuple(
        (
            E(f"Thing {n}", "object", f"A {topics[n % 3]} thing numbered {n}."),
            E(f"Other {n}", "object", f"{topics[n % 3]}."),
        )
        for n in range(count)
    )
    relations = tuple((RelationRecord(f"Thing {n}", f"Other {n}", "", "It has it.", (), 2.0),) for n in range(count))
    return chunks, RichExtraction(entities, relations)


SETTINGS = {"merge": "cut", "summary": "extractive", "reduction": "pca", "max_components": 6, "seed": 3}


def built(count=24, **options):
    return asyncio.run(hierarchical.build(*corpus(count), EMBEDDER, None, **{**SETTINGS, **options}))


def test_layer_0_is_the_tkg_and_summaries_stand_behind_it():
    made = built()
    graph = made.graph
    flat = asyncio.run(tkg.build(*corpus(24), EMBEDDER, None, merge="cut")).graph
    base = flat.n_nodes
    layer = graph.nodes["layer"].to_numpy()
    assert (layer[:base] == 0).all() and (layer[base:] > 0).all() and layer.max() >= 1
    assert graph.nodes.slice(0, base).select(["name", "type", "description"]).equals(flat.nodes)
    assert graph.relationships.slice(0, flat.n_relationships).equals(flat.relationships)
    assert (graph.node_chunk[:base] != flat.node_chunk).nnz == 0
    assert graph.node_chunk[base:].nnz == 0
    members = graph.of_kinds(["member"])
    assert len(members) == graph.n_relationships - flat.n_relationships
    assert (layer[graph.sources[members]] > layer[graph.targets[members]]).all()
    assert "node.layer" in graph.attributes


def test_the_facts_say_the_sparsity_that_the_graph_has():
    made = built(max_change=0.0)
    read = sparsity_by_layer(made.graph)
    facts = made.facts
    assert [round(row.sparsity, 6) for row in read] == facts["sparsity"][: len(read)]
    assert [row.nodes for row in read] == facts["layer_nodes"][: len(read)]
    assert sum(facts["layers"]) == made.graph.n_nodes
    assert facts["stopped"]


def test_it_is_built_the_same_twice():
    one, two = built(), built()
    assert one.graph.nodes.equals(two.graph.nodes)
    assert one.graph.relationships.equals(two.graph.relationships)
    assert {**one.facts, "clustering_seconds": 0} == {**two.facts, "clustering_seconds": 0}


def test_umap_is_asked_for_two_dimensions_of_fifteen_neighbours(monkeypatch):
    asked = []

    def project(vectors, reduction, **options):
        asked.append((reduction, options))
        return np.asarray(vectors[:, :2], np.float64)

    monkeypatch.setattr("graphrag_bench.graph.hierarchical.clustering.project", project)
    step = OneMixture(Mixture(max_components=3), seed=7)
    assert sorted(np.concatenate(step(np.random.default_rng(0).normal(size=(9, 5)))).tolist())[-1] == 8
    assert asked == [("umap", {"dimensions": 2, "neighbours": 8, "seed": 7})]
    step(np.random.default_rng(0).normal(size=(40, 5)))
    assert asked[1][1]["neighbours"] == 15
    assert [part.tolist() for part in step(np.eye(3))] == [[0, 1, 2]]
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [({"max_change": -0.1}, "max_change"), ({"threshold": 1.0}, "threshold"), ({"stop_size": 0}, "stop_size"),
     ({"summary": "model"}, "wants a model")],
)  # fmt: skip
def test_settings_out_of_range_are_said(options, said):
    with pytest.raises(UserError, match=said):
        built(4, **options)
