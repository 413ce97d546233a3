"""relationship.onehop against Python's sort over a networkx graph's degrees."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Nodes
from operators.relationship.onehop import onehop


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kinds=st.sampled_from([("fact",), ("fact", "synonym")]),
    rank=st.sampled_from(["degree", "score", "weight"]),
    ends=st.sampled_from(["either", "both", "source"]),
    top_k=st.sampled_from([None, 1, 3, 50]),
)
def test_equals_networkx(small, seed, kinds, rank, ends, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = onehop(graph, Nodes.of_rows(rows), kinds=kinds, rank=rank, ends=ends, top_k=top_k)
    table = {n: e for n, e in enumerate(graph.relationships.to_pylist()) if e["kind"] in kinds}
    simple = nx.Graph((e["source"], e["target"]) for e in table.values() if e["source"] != e["target"])
    degree = {n: simple.degree(n) if n in simple else 0 for n in range(graph.n_nodes)}
    for row, seeds in zip(found, map(small.naive, rows), strict=True):
        keys = {}
        for number, edge in table.items():
            two = edge["source"], edge["target"]
            inside = [end in seeds for end in two]
            if {"either": any(inside), "both": all(inside), "source": inside[0]}[ends]:
                keys[number] = {
                    "degree": (-degree[two[0]] - degree[two[1]], -edge["weight"]),
                    "score": -max(seeds[end] for end in two if end in seeds),
                    "weight": -edge["weight"],
                }[rank]
        wanted = sorted(keys, key=lambda n: (keys[n], n))[:top_k]
        assert row.ids.tolist() == wanted
        if rank != "degree":
            assert row.scores.tolist() == [-keys[n] for n in wanted]
        else:
            assert [int(score) for score in row.scores] == [-keys[n][0] for n in wanted]


def test_degree_first_then_weight_then_id(small):
    graph = small.graph_of(
        4, [(0, 1, "fact", 1.0), (1, 0, "fact", 2.0), (1, 2, "fact", 1.0), (0, 3, "fact", 2.0), (2, 3, "synonym", 9.0)]
    )
    # degrees over facts: 0 and 1 have 2, 2 and 3 have 1; the weights 1, 2 and 9 are the thirds 0, 1/3 and 2/3
    found = onehop(graph, Nodes.of_rows([([0, 1], [1.0, 0.5])])).row(0)
    assert found.ids.tolist() == [1, 0, 3, 2]
    assert found.scores.tolist() == [4 + 1 / 3, 4.0, 3 + 1 / 3, 3.0]


def test_which_ends_must_be_given(small):
    """A loop has both ends where it has one; of parallel relationships each is judged by itself."""
    joined = [(0, 1), (1, 0), (0, 2), (2, 1), (0, 0), (2, 3)]
    graph = small.graph_of(4, [(source, target, "fact", 1.0) for source, target in joined])
    given_nodes = Nodes.of_rows([([0, 1], [1.0, 0.5]), ([1], [1.0]), ([], [])])

    def found(ends, top_k=None):
        return [sorted(row.ids.tolist()) for row in onehop(graph, given_nodes, ends=ends, top_k=top_k)]

    assert found("either") == [[0, 1, 2, 3, 4], [0, 1, 3], []]
    assert found("both") == [[0, 1, 4], [], []]
    assert found("source") == [[0, 1, 2, 4], [1], []]
    assert [len(row) for row in found("both", 2)] == [2, 0, 0], "what is not taken must not use up top_k"
