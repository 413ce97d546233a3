"""The trees: layers, summaries by a model and by extraction, failures, and the same bytes twice."""

import asyncio
import io
import re
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.builders import tree, tree_k
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.tree.extracts import by_extracts, sentences
from graphrag_bench.graph.tree.layers import Cluster
from graphrag_bench.graph.tree.summaries import fit
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError
from graphrag_bench.llm.service import Chat
from graphrag_bench.registry import REGISTRY

THEMES = (
    "glaciers melt above the fjord",
    "violins are carved of spruce",
    "bees store honey in wax",
    "ships carry grain",
)


def corpus(count, themes=THEMES):
    texts = [f"{themes[n % len(themes)]}, report {n} of the survey." for n in range(count)]
    return tuple(Chunk(n, text, "", (f"d{n}",), len(text.split())) for n, text in enumerate(texts))


def chunked(*texts, title=""):
    return tuple(Chunk(n, text, title, (f"d{n}",), len(text.split())) for n, text in enumerate(texts))


class Silent:
    """A model nobody may ask."""

    window = 0
    concurrency = 1

    def count(self, text):
        raise AssertionError("counted")


def heads(messages, schema):
    """A summary that names the first words of each text."""
    return "About " + "; ".join(text[:12] for text in messages[-1].text.split("\n\n")[:-1])


def built(chunks, builder=tree, answer=heads, window=8192, on_call=None, **settings):
    model = Chat(Scripted.of(answer, window=window), on_call=on_call) if answer is not None else Silent()
    if builder is tree:
        settings = {"reduction": "pca", "dimensions": 4, "stop_size": 5, "max_components": 8, **settings}
    made = asyncio.run(builder.build(chunks, model, HashingEmbedder(), **settings))
    return made, model


def members(graph):
    out = {}
    for source, target in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        out.setdefault(source, []).append(target)
    return out


def as_bytes(graph):
    out = io.BytesIO()
    pq.write_table(graph.nodes, out)
    pq.write_table(graph.relationships, out)
    return out.getvalue()


@pytest.mark.parametrize("builder", [tree, tree_k])
def test_leaves_are_the_chunks_and_summaries_follow_layer_by_layer(builder):
    chunks = corpus(40)
    made, _ = built(chunks, builder)
    graph = made.graph
    layer = graph.nodes["layer"].to_pylist()
    assert graph.column("nodes", "text")[:40] == [chunk.text for chunk in chunks]
    assert layer[:40] == [0] * 40
    assert layer == sorted(layer)
    assert layer[-1] >= 1
    assert str(graph.nodes.schema.field("layer").type) == "int32"
    assert (graph.node_chunk.toarray()[:40] == np.eye(40)).all()
    assert graph.node_chunk.toarray()[40:].sum() == 0
    assert graph.relationship_chunk.shape == (graph.n_relationships, 40)
    assert graph.relationship_chunk.nnz == 0
    assert graph.statistics()["by_kind"] == {"member": graph.n_relationships}
    assert graph.weights.tolist() == [1.0] * graph.n_relationships
    assert graph.attributes == {"node.text", "node.layer"}
    for summary, children in members(graph).items():
        assert summary >= 40
        assert len(children) > 1
        assert children == sorted(set(children))
        assert all(layer[child] < layer[summary] for child in children)
    assert made.facts["layers"] == [layer.count(number) for number in range(max(layer) + 1)]
    assert made.failed == {}
    assert made.facts["failed"] == {}


@pytest.mark.parametrize("builder", [tree, tree_k])
def test_every_chunk_is_reached_from_the_top(builder):
    graph = built(corpus(50), builder, max_layers=2)[0].graph
    children = members(graph)
    seen, todo = set(), [node for node in range(graph.n_nodes) if node not in set(graph.targets.tolist())]
    assert len(todo) < 50
    while todo:
        node = todo.pop()
        seen.add(node)
        todo += children.get(node, [])
    assert seen == set(range(graph.n_nodes))


@pytest.mark.parametrize("builder", [tree, tree_k])
@pytest.mark.parametrize("summary", ["model", "extractive"])
def test_twice_is_the_same_bytes(builder, summary):
    chunks = corpus(45)
    one, two = (built(chunks, builder, summary=summary)[0] for _ in range(2))
    assert as_bytes(one.graph) == as_bytes(two.graph)
    assert one.facts.keys() == two.facts.keys()


def test_umap_twice_is_the_same_bytes():
    chunks = corpus(30)
    one, two = (built(chunks, reduction="umap", dimensions=3, summary="extractive")[0] for _ in range(2))
    assert as_bytes(one.graph) == as_bytes(two.graph)
    assert one.graph.n_nodes > 30


def test_without_umap_nothing_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(UserError, match=r"graph\.reduction=pca"):
        built(corpus(20), answer=None, reduction="umap")


@pytest.mark.parametrize(("count", "expected"), [(1, [1]), (10, [10, 1]), (95, [95, 10, 1]), (101, [101, 11, 2, 1])])
def test_raptor_k_has_a_parent_for_ten_nodes_up_to_one_root(count, expected):
    made, _ = built(corpus(count), tree_k)
    # single-node clusters are passed up: they shorten a layer of summaries, never the count of nodes that go on
    on = [a + b for a, b in zip(made.facts["clusters"], made.facts["passed_up"], strict=True)]
    assert on == expected[1:]
    assert made.facts["top"] == expected[-1]
    assert np.bincount(made.graph.targets, minlength=1).max(initial=0) <= 1


def test_growing_stops_at_the_most_layers_and_at_a_small_layer():
    assert len(built(corpus(95), tree_k, max_layers=1)[0].facts["layers"]) == 2
    assert built(corpus(95), tree_k, stop_size=10)[0].facts["layers"] == [95, 10]
    small, model = built(corpus(5))
    assert (small.graph.n_nodes, small.graph.n_relationships, model.backend.calls) == (5, 0, 0)
    assert small.facts["layers"] == [5]


def test_a_lone_node_is_passed_up_as_itself():
    themes = [THEMES[n % 2] for n in range(12)]
    texts = [f"{theme} number {n}." for n, theme in enumerate(themes)] + ["Quartz!"]
    made, _ = built(chunked(*texts), tree_k, cluster_size=5, max_layers=3)
    graph = made.graph
    assert made.facts["passed_up"][0] == 1
    parents = graph.sources[graph.targets == 12]
    layer = graph.nodes["layer"].to_pylist()
    assert [layer[parent] for parent in parents] == [2]  # with the summaries of the others
    assert "Quartz!" in graph.column("nodes", "text")[int(parents[0])]


def test_equal_texts_are_different_nodes_and_the_bound_ends_the_recursion():
    made, _ = built(chunked(*["The same words again."] * 30), max_cluster_tokens=30, max_layers=1)
    graph = made.graph
    assert sorted(graph.targets.tolist()) == list(range(30))
    tokens = len(load_tokenizer("regex").starts("The same words again."))
    assert {len(children) for children in members(graph).values()} == {30 // tokens}


@pytest.mark.parametrize("builder", [tree, tree_k])
def test_no_cluster_has_more_tokens_than_allowed(builder):
    bound = 60
    graph = built(corpus(60), builder, max_cluster_tokens=bound, max_layers=2)[0].graph
    count = load_tokenizer("regex").starts
    texts = graph.column("nodes", "text")
    for children in members(graph).values():
        assert sum(len(count(texts[child])) for child in children) <= bound


def test_soft_membership_gives_several_parents_and_hard_gives_one():
    chunks = corpus(80, [" ".join(THEMES[(n + k) % 4] for k in range(1 + n % 3)) for n in range(7)])
    soft = built(chunks, threshold=0.001, max_layers=1, max_components=4)[0].facts
    hard = built(chunks, membership="hard", max_layers=1, max_components=4)[0].facts
    assert soft["mean_parents"] >= hard["mean_parents"] == 1.0


def test_the_ledger_knows_each_summary():
    booked = []
    made, model = built(corpus(40), tree_k, on_call=booked.append)
    asked = sum(made.facts["clusters"])
    assert model.backend.calls == asked == 4 + 1
    names = made.graph.names(range(40, made.graph.n_nodes))
    assert names == ["summary 1.0", "summary 1.1", "summary 1.2", "summary 1.3", "summary 2.0"]
    assert [entry.subject for entry in booked] == [f"layer 1 cluster {n}" for n in range(4)] + ["layer 2 cluster 0"]
    assert {(entry.stage, entry.purpose, entry.failure) for entry in booked} == {("graph", "summary", None)}


def test_a_failed_summary_is_recorded_and_its_members_go_on():
    def fails(messages, schema):
        if "report 0 of" in messages[-1].text and "About" not in messages[-1].text:
            raise CallError("bad_request", "no", retry=False)
        return heads(messages, schema)

    made, _ = built(corpus(40), tree_k, answer=fails)
    assert list(made.failed) == ["layer 1 cluster 0"]
    assert made.failed["layer 1 cluster 0"].startswith("bad_request: ")
    assert made.facts["failed"] == {"bad_request": 1}
    graph = made.graph
    layer = graph.nodes["layer"].to_pylist()
    above = {layer[source] for source, target in zip(graph.sources, graph.targets, strict=True) if target == 0}
    assert above == {2}
    assert made.facts["passed_up"][0] > 1


@pytest.mark.parametrize("builder", [tree, tree_k])
def test_when_every_summary_fails_the_user_is_told(builder):
    def fails(messages, schema):
        raise CallError("bad_request", "no", retry=False)

    with pytest.raises(UserError, match=r"None of the \d+ summaries .*bad_request"):
        built(corpus(40), builder, answer=fails)


def test_settings_out_of_range_are_refused():
    for settings in ({"summary_tokens": 0}, {"dimensions": 1}, {"max_depth": -1}, {"threshold": 1.0}):
        with pytest.raises(UserError, match=f"graph.{next(iter(settings))}"):
            built(corpus(3), **settings)
    with pytest.raises(UserError, match="cluster_size"):
        built(corpus(3), tree_k, cluster_size=1)


def test_texts_share_the_window_and_the_head_of_a_long_one_is_kept():
    model = Chat(Scripted())  # counts words
    long, short = " ".join(f"w{n}" for n in range(100)), "just four short words"
    assert fit([long, short], 200, model) == [long, short]
    # 60 less 2 for each gap: 56; the short one takes 4 of its 28 and leaves 52
    assert fit([long, short], 60, model) == [" ".join(f"w{n}" for n in range(52)), short]
    assert fit([long, long], 60, model) == [" ".join(f"w{n}" for n in range(28))] * 2
    # a share of fewer than 16 tokens says nothing: the first three of five texts
    assert fit([long] * 5, 60, model) == [" ".join(f"w{n}" for n in range(18))] * 3


def test_a_prompt_fits_the_window_and_the_cut_is_counted():
    seen = []

    def answer(messages, schema):
        seen.append(sum(len(message.text.split()) for message in messages))
        return "A summary."

    chunks = chunked(*(f"text {n} " + "word " * 200 for n in range(20)))
    made, _ = built(chunks, tree_k, answer=answer, window=500, summary_tokens=50)
    assert made.facts["cut"] == made.facts["clusters"][0]
    assert max(seen) <= 450
    with pytest.raises(UserError, match="window"):
        built(chunks, tree_k, window=100, summary_tokens=50)


def test_prompts_begin_alike_and_hold_the_texts_in_the_order_of_ids():
    asked = []

    def answer(messages, schema):
        asked.append(messages)
        return "A summary."

    built(corpus(20), tree_k, answer=answer, max_layers=1)
    assert len({messages[0].text for messages in asked}) == 1
    for messages in asked:
        numbers = [int(n) for n in re.findall(r"report (\d+)", messages[1].text)]
        assert numbers == sorted(numbers)


def test_extraction_asks_nobody():
    made, _ = built(corpus(40), answer=None, summary="extractive", summary_tokens=25)
    count = load_tokenizer("regex").starts
    texts = made.graph.column("nodes", "text")
    assert len(texts) > 40
    assert all(0 < len(count(text)) <= 25 for text in texts[40:])
    for name, says in (("tree", True), ("tree_k", True)):
        spends = REGISTRY.get("builder", name).extra["spends"]
        assert (spends({"summary": "model"}), spends({"summary": "extractive"})) == (says, False)


def test_sentences_end_where_they_should():
    text = "Ada Brown\nShe met J. Smith in Ulm. “Really?” he asked!\n\nNo stop here\n\n水は流れる。火は燃える。"
    assert sentences(text) == [
        "Ada Brown She met J. Smith in Ulm.",
        "“Really?” he asked!",
        "No stop here",
        "水は流れる。",
        "火は燃える。",
    ]
    assert sentences("\n\n".join(sentences(text))) == sentences(text)


def test_the_central_sentences_are_taken_in_their_order():
    texts = (
        "Zebras sleep. The river Ulm floods the mill.",
        "The mill on the river Ulm burned. Marble costs money.",
        "The river Ulm drives the mill.",
    )
    write = by_extracts(texts, load_tokenizer("regex"), 25)
    (found,) = asyncio.run(write([Cluster("layer 1 cluster 0", texts)]))
    assert found.text.split("\n\n") == [
        "The river Ulm floods the mill.",
        "The mill on the river Ulm burned.",
        "The river Ulm drives the mill.",
    ]
    assert found.failure is None
    (short,) = asyncio.run(by_extracts(texts, load_tokenizer("regex"), 3)([Cluster("x", texts)]))
    assert short.text == "The river Ulm"
    # an equal sentence is taken once
    (once,) = asyncio.run(write([Cluster("x", ("Ulm floods.", "Ulm floods."))]))
    assert once.text == "Ulm floods."


def test_a_tree_is_saved_and_opened(tmp_path):
    graph = built(corpus(30), tree_k)[0].graph
    graph.save(tmp_path)
    again = Graph.open(tmp_path)
    assert again.nodes.to_pydict() == graph.nodes.to_pydict()
    assert again.relationships.equals(graph.relationships)
    assert again.attributes == graph.attributes
