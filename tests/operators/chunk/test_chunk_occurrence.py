"""chunk.occurrence: both rules against loops over sets."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.values import Nodes, Relationships
from operators.chunk.occurrence import occurrence


def chunks_of(matrix):
    return [set(row.nonzero()[0].tolist()) for row in matrix.toarray()]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([None, 1, 2, 50]))
def test_both_ends_in_the_chunk(small, seed, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_relationships)
    found = occurrence(graph, Relationships.of_rows(rows), top_k=top_k)
    held = chunks_of(graph.node_chunk)
    for row, given_ids in zip(found, map(small.naive, rows), strict=True):
        counts = {}
        for number in given_ids:
            for chunk in held[graph.sources[number]] & held[graph.targets[number]]:
                counts[chunk] = counts.get(chunk, 0) + 1
        assert small.pairs(row) == small.ranked(counts, top_k)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([None, 1, 2, 50]))
def test_by_nodes_is_the_ranking_of_the_code(small, seed, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = occurrence(graph, None, Nodes.of_rows(rows), rank="nodes", top_k=top_k)
    held = chunks_of(graph.node_chunk)
    facts = nx.Graph([(int(graph.sources[n]), int(graph.targets[n])) for n in graph.facts])
    facts.remove_edges_from(list(nx.selfloop_edges(facts)))
    for row, scores in zip(found, map(small.naive, rows), strict=True):
        keys = {}
        for place, (node, _) in enumerate(small.ranked(scores)):
            for chunk in held[node] - keys.keys():
                around = facts.adj.get(node, ())
                keys[chunk] = (place, -sum(chunk in held[other] for other in around))
        wanted = sorted(keys, key=lambda chunk: (keys[chunk], chunk))
        assert row.ids.tolist() == wanted[:top_k]
        # one over the place, and equals share theirs
        places = [1 + sum(keys[other] < keys[chunk] for other in keys) for chunk in wanted]
        assert row.scores.tolist() == [1 / place for place in places[:top_k]]


def test_by_hand(small):
    edges = [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0), (0, 2, "fact", 1.0)]
    graph = small.graph_of(3, edges, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 2)], chunks=4)
    related = Relationships.of_rows([([0, 1, 2], [0.1, 0.9, 0.5]), ([0], [1.0])])
    # chunk 0 holds the ends of relationship 0, chunk 1 those of all three, chunk 2 only node 2
    assert [small.pairs(row) for row in occurrence(graph, related)] == [[(1, 3.0), (0, 1.0)], [(0, 1.0), (1, 1.0)]]
    nodes = Nodes.of_rows([([0, 2], [1.0, 0.5])])
    # node 0 is in chunks 0 (one neighbour beside it) and 1 (two); node 2 adds chunk 2
    assert small.pairs(occurrence(graph, None, nodes, rank="nodes").row(0)) == [(1, 1.0), (0, 1 / 2), (2, 1 / 3)]


@pytest.mark.parametrize("rank", ["relationships", "nodes"])
def test_without_the_wire_of_its_rule_it_serves_nobody(small, rank):
    wires = {"nodes": Nodes.empty(1)} if rank == "relationships" else {"relationships": Relationships.empty(1)}
    with pytest.raises(OperatorFailure, match=f"needs {rank}"):
        occurrence(small.graph_of(1, []), **wires, rank=rank)
