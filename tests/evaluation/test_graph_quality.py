"""Measures of a graph: sparsity of layers by hand, transitivity against networkx, coverage of bridges by hand."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.evaluation.graph_quality import (
    bridge_coverage,
    change_rates,
    cluster_sparsity,
    global_clustering,
    sparsity_by_layer,
)
from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Path, Subgraphs


def graph_of(n, edges, kind="fact", layer=None):
    nodes = {"name": pa.array([f"n{i}" for i in range(n)], pa.string())}
    more = {} if layer is None else {"layer": pa.array(layer, pa.int32())}
    none = np.empty(0, int)
    return Graph(
        nodes=pa.table({**nodes, **more}),
        relationships=pa.table(
            {
                "source": pa.array([e[0] for e in edges], pa.int32()),
                "target": pa.array([e[1] for e in edges], pa.int32()),
                "kind": pa.array([kind] * len(edges), pa.string()),
                "name": pa.array(["r"] * len(edges), pa.string()),
                "weight": pa.array([1.0] * len(edges), pa.float32()),
            }
        ),
        node_chunk=incidence(none, none, (n, 1)),
        relationship_chunk=incidence(none, none, (len(edges), 1)),
        attributes=frozenset({"node.layer"} if layer is not None else ()),
    )


def test_sparsity_is_the_share_of_pairs_that_no_cluster_holds():
    assert cluster_sparsity([2, 2], 4) == pytest.approx(1 - 4 / 12)
    assert cluster_sparsity([4], 4) == 0.0
    assert cluster_sparsity([1, 1, 1], 3) == 1.0
    assert cluster_sparsity([3, 3], 4) == pytest.approx(0.0)  # two clusters that share two nodes
    assert cluster_sparsity([], 0) == cluster_sparsity([1], 1) == 1.0


@given(st.lists(st.integers(1, 6), max_size=6))
def test_sparsity_of_a_partition_counts_its_pairs(sizes):
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    n = len(labels)
    apart = [labels[a] != labels[b] for a in range(n) for b in range(n) if a != b]
    assert cluster_sparsity(sizes, n) == pytest.approx(sum(apart) / len(apart) if apart else 1.0)


def test_change_is_a_share_of_the_layer_before():
    assert change_rates([]) == []
    assert change_rates([0.8, 0.9, 0.9]) == [None, pytest.approx(0.125), 0.0]
    assert change_rates([0.0, 0.0, 0.5]) == [None, 0.0, float("inf")]


def test_layers_are_read_from_summaries_and_members():
    # entities 0 to 4; summaries 5 and 6 of one cluster {0, 1, 2}; 3 and 4 are passed up; summary 7 of {3, 5, 6}
    members = [(5, 0), (5, 1), (5, 2), (6, 2), (6, 0), (6, 1), (7, 3), (7, 5), (7, 6)]
    found = sparsity_by_layer(graph_of(8, members, "member", [0, 0, 0, 0, 0, 1, 1, 2]))
    assert [row[:3] for row in found] == [(0, 5, 1), (1, 4, 1)]
    assert found[0].sparsity == pytest.approx(1 - 6 / 20)
    assert found[1].sparsity == pytest.approx(1 - 6 / 12)
    assert found[0].change is None and found[1].change == pytest.approx(0.2 / 0.7)
    with pytest.raises(ValueError, match="no layers"):
        sparsity_by_layer(graph_of(1, []))


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
))  # fmt: skip
def test_clustering_is_the_transitivity_of_networkx(case):
    n, edges = case
    simple = nx.Graph()
    simple.add_nodes_from(range(n))
    simple.add_edges_from(edge for edge in edges if edge[0] != edge[1])
    assert global_clustering(graph_of(n, edges)) == pytest.approx(nx.transitivity(simple))


def test_only_the_kinds_asked_for_make_triangles():
    triangle = graph_of(3, [(0, 1), (1, 2), (2, 0)], "member")
    assert global_clustering(triangle) == 0.0
    assert global_clustering(triangle, ("member",)) == 1.0


def test_coverage_counts_pairs_keys_hops_and_what_lies_between():
    keys = Nodes.of_rows([([4, 1, 7], [1.0, 0.5, 0.3]), ([2], [1.0]), ([], [])])
    bridges = Subgraphs([[Path((4, 9, 1), (0, 1), (1, 1), 1.0)], [], []])
    found = bridge_coverage(keys, bridges)
    assert (found.pairs, found.joined, found.hops) == (2, 0.5, 2.0)
    assert found.keys == pytest.approx(2 / 4)
    assert found.between == pytest.approx(1 / 3)
    nothing = bridge_coverage(Nodes.empty(0), Subgraphs([]))
    assert nothing == (0, 0.0, 0.0, 0.0, 0.0)
    assert found.plain()["between"] == 0.333333
