"""node.top_in_community against a plain loop, and by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import incidence
from graphrag_bench.pipeline.values import Communities, Nodes
from operators.node.top_in_community import top_in_community


def divided(graph, groups):
    pairs = np.array([(number, node) for number, group in enumerate(groups) for node in group]).reshape(-1, 2)
    members = incidence(pairs[:, 0], pairs[:, 1], (len(groups), graph.n_nodes))
    flat = np.zeros(len(groups), np.int32)
    return replace(graph, hierarchy=Hierarchy(flat, flat - 1, members))


def in_order(kind, rows):
    return kind.of_rows([(row, [1.0 / place for place in range(1, len(row) + 1)]) for row in rows])


def test_communities_come_first_then_the_order_of_the_nodes(small):
    graph = divided(small.graph_of(6, []), [[0, 1, 2], [2, 3, 4], [5]])
    found = top_in_community(graph, in_order(Nodes, [[4, 2, 0, 3, 1]]), in_order(Communities, [[1, 0]]), top_m=2)
    # of community 1 the nodes 4 and 2; of community 0 the nodes 2, which stands already, and 0
    assert small.pairs(found.row(0)) == [(4, 1.0), (2, 0.5), (0, 1 / 3)]


def test_nothing_in_any_community_is_nothing(small):
    graph = divided(small.graph_of(3, []), [[0], [1]])
    found = top_in_community(graph, in_order(Nodes, [[2], [], [0]]), in_order(Communities, [[0], [1], []]))
    assert [len(row.ids) for row in found] == [0, 0, 0]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_it_is_the_loop_over_communities(small, data):
    n = data.draw(st.integers(1, 12))
    groups = data.draw(st.lists(st.lists(st.integers(0, n - 1), unique=True), min_size=1, max_size=5))
    size = data.draw(st.integers(1, 3))
    nodes = [data.draw(st.lists(st.integers(0, n - 1), unique=True)) for _ in range(size)]
    into = [data.draw(st.lists(st.integers(0, len(groups) - 1), unique=True)) for _ in range(size)]
    top_m = data.draw(st.integers(1, 4))
    graph = divided(small.graph_of(n, []), groups)
    found = top_in_community(graph, in_order(Nodes, nodes), in_order(Communities, into), top_m=top_m)
    for row, given_nodes, given_communities in zip(found, nodes, into, strict=True):
        wanted = []
        for community in given_communities:
            wanted += [node for node in given_nodes if node in groups[community]][:top_m]
        assert row.ids.tolist() == list(dict.fromkeys(wanted))
