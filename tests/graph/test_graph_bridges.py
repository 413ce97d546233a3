"""Bridges: shortest paths between successive nodes against networkx, and the rule among paths as short."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.graph.bridges import Bridges
from graphrag_bench.graph.graph import Graph, incidence


def graph_of(n, edges):
    """Make a graph of (source, target, kind)."""
    none = incidence(np.empty(0, int), np.empty(0, int), (n, 1))
    return Graph(
        nodes=pa.table({"name": [f"n{i}" for i in range(n)]}),
        relationships=pa.table(
            {
                "source": pa.array([e[0] for e in edges], pa.int32()),
                "target": pa.array([e[1] for e in edges], pa.int32()),
                "kind": pa.array([e[2] for e in edges], pa.string()),
                "name": pa.array(["r"] * len(edges), pa.string()),
                "weight": pa.array([1.0] * len(edges), pa.float32()),
            }
        ),
        node_chunk=none,
        relationship_chunk=incidence(np.empty(0, int), np.empty(0, int), (len(edges), 1)),
        attributes=frozenset({"relationship.name"}),
    )


def first_shortest(graph, one, two):
    """The smallest of all shortest paths, node by node; empty where there is none."""
    if one not in graph or two not in graph or not nx.has_path(graph, one, two):
        return ()
    return min(map(tuple, nx.all_shortest_paths(graph, one, two)))


edges_of = st.integers(2, 14).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from(["fact", "member", "synonym"])),
            max_size=30,
        ),
        st.lists(st.integers(0, n - 1), max_size=8, unique=True),
        st.sampled_from([None, 1, 2, 3, 4]),
    )
)


@settings(max_examples=400, deadline=None)
@given(edges_of)
def test_paths_are_the_first_of_networkx_shortest_ones(case):
    n, edges, keys, most = case
    simple = nx.Graph()
    simple.add_nodes_from(range(n))
    simple.add_edges_from((a, b) for a, b, kind in edges if kind != "synonym" and a != b)
    wanted = [first_shortest(simple, one, two) for one, two in pairwise(keys)]
    wanted = [path if most is None or len(path) <= most + 1 else () for path in wanted]
    assert Bridges(graph_of(n, edges), ("fact", "member")).between(list(pairwise(keys)), most) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_long_lists_on_a_sparse_graph_with_far_apart_ends(seed):
    rng = np.random.default_rng(seed)
    n = 400
    edges = [(int(a), int(b), "fact") for a, b in rng.integers(0, n, (430, 2))] + [
        (i, i + 1, "fact") for i in range(60)
    ]
    simple = nx.Graph((a, b) for a, b, _ in edges if a != b)
    keys = rng.permutation(n)[:60].tolist()
    found = Bridges(graph_of(n, edges), ("fact",)).between(list(pairwise(keys)))
    assert found == [first_shortest(simple, one, two) for one, two in pairwise(keys)]
    assert max(map(len, found)) > 6


def test_pairs_of_different_blocks_are_all_answered():
    n = 50
    graph = graph_of(
        n, [(i, (i * 7 + 1) % n, "fact") for i in range(n)] + [(i, (i + 1) % n, "fact") for i in range(0, n, 3)]
    )
    simple = nx.Graph((a, b) for a, b in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True) if a != b)
    pairs = [(one, two) for one in range(n) for two in range(n) if one != two]
    assert len(pairs) > 2 * 1024
    assert Bridges(graph, ("fact",)).between(pairs) == [first_shortest(simple, *pair) for pair in pairs]


def test_nothing_given_is_nothing_found():
    bridges = Bridges(graph_of(3, [(0, 1, "fact")]), ("fact",))
    assert bridges.between([]) == []
    assert bridges.between([(1, 1), (0, 2), (0, 1)]) == [(1,), (), (0, 1)]
    assert Bridges(graph_of(2, []), ("fact",)).between([(0, 1)]) == [()]
