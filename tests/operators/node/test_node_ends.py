"""node.ends and node.exact: nodes out of relationships, and out of names."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from operators.node.ends import ends
from operators.node.exact import exact


@settings(deadline=None)
@given(
    seed=st.integers(0, 400), rule=st.sampled_from(["mean", "sum"]), weight=st.sampled_from(["score", "specificity"])
)
def test_against_a_plain_computation(small, seed, rule, weight):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_relationships)
    found = ends(graph, Relationships.of_rows(rows), rule=rule, weight=weight, top_k=3)
    held = graph.node_chunk.toarray().sum(axis=1)
    for row, scores in zip(found, map(small.naive, rows), strict=True):
        at = defaultdict(list)
        for relationship, score in scores.items():
            for node in {int(graph.sources[relationship]), int(graph.targets[relationship])}:
                at[node].append(score)
        wanted = {
            node: sum(of) / (len(of) if rule == "mean" else 1) / (max(held[node], 1) if weight == "specificity" else 1)
            for node, of in at.items()
        }
        assert small.pairs(row) == [(node, pytest.approx(score)) for node, score in small.ranked(wanted, 3)]


def test_by_hand_the_mean_over_a_nodes_facts_by_its_chunks(small):
    graph = small.graph_of(3, [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0)], [(0, 0), (1, 0), (1, 1), (2, 1)], chunks=2)
    found = ends(graph, Relationships.of_rows([([0, 1], [1.0, 0.5]), ([], [])]))
    assert small.pairs(found.row(0)) == [(0, 1.0), (2, 0.5), (1, 0.375)]  # node 1: (1 + 0.5) / 2 in two chunks
    assert small.pairs(found.row(1)) == []


def test_exact_names_are_nodes_and_the_rest_is_left(asking, small):
    graph = asking.told([("Ada Brown", "built", "Glass Bridge"), ("Ulm", "is", "river")])
    asked = Questions(
        ("a", "b", "c"),
        ("?", "?", "?"),
        entities=(("ada  BROWN", "Ulm!", "Brown"), (), ("Ulm",)),
        failed={2: "earlier"},
    )
    found = exact(graph, asked)
    assert small.pairs(found.nodes.row(0)) == [(0, 1.0), (2, 1.0)]
    assert found.rest.read("entities") == [("Brown",), (), ()]
    assert [len(row.ids) for row in found.nodes] == [2, 0, 0] and dict(found.rest.failed) == {2: "earlier"}
    assert small.pairs(exact(graph, asked).nodes.row(0)) == small.pairs(found.nodes.row(0))
