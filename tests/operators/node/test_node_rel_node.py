"""node.rel_node against loops over the relationships in order."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Relationships
from operators.node.rel_node import rel_node


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rank=st.sampled_from(["order", "degree", "score"]),
    top_k=st.sampled_from([None, 1, 3, 50]),
)
def test_equals_loops(small, seed, rank, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_relationships)
    facts = nx.Graph([(int(graph.sources[n]), int(graph.targets[n])) for n in graph.facts])
    facts.remove_edges_from(list(nx.selfloop_edges(facts)))
    for row, scores in zip(
        rel_node(graph, Relationships.of_rows(rows), rank=rank, top_k=top_k), map(small.naive, rows), strict=True
    ):
        ordered = small.ranked(scores)
        named = dict.fromkeys(n for r, _ in ordered for n in (int(graph.sources[r]), int(graph.targets[r])))
        if rank == "order":
            wanted = [(node, 1 / place) for place, node in enumerate(named, 1)][:top_k]
        else:
            best = {
                node: max(s for r, s in ordered if node in (graph.sources[r], graph.targets[r]))
                if rank == "score"
                else (facts.degree(node) if node in facts else 0)
                for node in named
            }
            wanted = small.ranked(best, top_k)
        assert small.pairs(row) == wanted


def test_a_source_stands_before_its_target(small):
    graph = small.graph_of(3, [(0, 1, "fact", 1.0), (2, 0, "synonym", 1.0)])
    found = rel_node(graph, Relationships.of_rows([([0, 1], [0.2, 0.9])])).row(0)
    assert small.pairs(found) == [(2, 1.0), (0, 1 / 2), (1, 1 / 3)]
