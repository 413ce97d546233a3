"""subgraph.bridge: paths from key to key, the relationship on each step, and jumps."""

from itertools import pairwise

import networkx as nx
import pytest

from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Path
from operators.subgraph.bridge import bridge


def ranked(*rows):
    return Nodes.of_rows([(row, [1.0 / place for place in range(1, len(row) + 1)]) for row in rows])


def test_paths_follow_the_keys_and_jump_where_none_leads_on(small):
    graph = small.graph_of(
        7,
        [(0, 1, "fact", 1.0), (2, 1, "fact", 1.0), (1, 2, "fact", 2.0), (2, 3, "member", 1.0), (4, 5, "fact", 1.0),
         (3, 4, "synonym", 9.0)],
    )  # fmt: skip
    (row,) = bridge(graph, ranked([0, 3, 4, 5])).rows
    assert row == (
        Path((0, 1, 2, 3), (0, 2, 3), (1, 1, 1), 1.0),  # of the parallel relationships the heavier one
        Path((4, 5), (4,), (1,), 0.5),  # 3 to 4 is a jump: nobody walks synonyms
    )


def test_the_order_of_the_keys_and_not_their_ids_decides(small):
    graph = small.graph_of(4, [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0), (2, 3, "fact", 1.0)])
    (row,) = bridge(graph, ranked([3, 0, 2])).rows
    assert [path.nodes for path in row] == [(3, 2, 1, 0), (0, 1, 2)]
    assert row[0].directions == (-1, -1, -1)


def test_kinds_and_hops_are_settings(small):
    graph = small.graph_of(3, [(0, 1, "fact", 1.0), (1, 2, "synonym", 1.0)])
    assert bridge(graph, ranked([0, 2])).rows == ((),)
    assert len(bridge(graph, ranked([0, 2]), kinds=("fact", "synonym")).rows[0]) == 1
    assert bridge(graph, ranked([0, 2]), kinds=("fact", "synonym"), max_hops=1).rows == ((),)


@pytest.mark.parametrize("seed", range(25))
def test_lengths_and_ends_are_those_of_networkx(small, seed):
    graph = small.random_graph(seed)
    rows = [list(dict.fromkeys(ids)) for ids, _ in small.random_rows(seed, graph.n_nodes)]
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.n_nodes))
    facts = [e for e in graph.relationships.to_pylist() if e["kind"] == "fact"]
    simple.add_edges_from((e["source"], e["target"]) for e in facts)
    for keys, paths in zip(rows, bridge(graph, ranked(*rows)).rows, strict=True):
        wanted = [
            (one, two, nx.shortest_path_length(simple, one, two))
            for one, two in pairwise(keys)
            if nx.has_path(simple, one, two)
        ]
        assert [(p.nodes[0], p.nodes[-1], len(p.relationships)) for p in paths] == wanted
        for path in paths:
            for (a, b), number, way in zip(pairwise(path.nodes), path.relationships, path.directions, strict=True):
                assert (a, b)[::way] == (graph.sources[number], graph.targets[number])
