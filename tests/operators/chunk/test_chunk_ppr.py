"""chunk.ppr: the walk over entities and passages, against networkx on a graph that has the passages as nodes."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.graph.passages import unit_range, with_passages
from graphrag_bench.pipeline.values import Chunks, Nodes
from operators.chunk.otherwise import otherwise
from operators.chunk.ppr import ppr


def combined(graph, edge, weighted):
    """The graph of entities and passages, built edge by edge."""
    whole = nx.Graph()
    whole.add_nodes_from(range(graph.n_nodes))
    whole.add_nodes_from(("chunk", c) for c in range(graph.n_chunks))
    for a, b, weight in zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True):
        if a != b:
            before = whole.get_edge_data(a, b, {"weight": 0.0})["weight"]
            whole.add_edge(a, b, weight=before + weight if weighted else 1.0)
    for node, chunk in zip(*graph.node_chunk.nonzero(), strict=True):
        whole.add_edge(int(node), ("chunk", int(chunk)), weight=edge)
    return whole


@settings(deadline=None)
@given(
    seed=st.integers(0, 400),
    damping=st.sampled_from([0.0, 0.5, 0.85]),
    weighted=st.booleans(),
    edge=st.sampled_from([0.5, 1.0]),
)
def test_against_networkx(small, seed, damping, weighted, edge):
    graph = small.random_graph(seed)
    seeds = small.random_rows(seed, graph.n_nodes)
    dense = small.random_rows(seed + 1, graph.n_chunks)
    found = ppr(
        graph,
        Nodes.of_rows(seeds),
        Chunks.of_rows(dense),
        damping=damping,
        weighted=weighted,
        passage_edge=edge,
        passage_weight=0.2,
    )
    whole = combined(graph, edge, weighted)
    for row, nodes, chunks in zip(found, map(small.naive, seeds), map(small.naive, dense), strict=True):
        if not nodes:
            assert len(row.ids) == 0
            continue
        low, high = min(chunks.values(), default=0), max(chunks.values(), default=0)
        restart = dict(nodes)
        for chunk, score in chunks.items():
            restart["chunk", chunk] = 0.2 * ((score - low) / (high - low) if high > low else 1.0)
        wanted = nx.pagerank(whole, alpha=damping, personalization=restart, dangling=restart, tol=1e-12, max_iter=1000)
        scores = dict(small.pairs(row))
        for chunk in range(graph.n_chunks):
            assert scores.get(chunk, 0.0) == pytest.approx(wanted["chunk", chunk], abs=1e-8)


def test_by_hand_one_entity_in_two_passages(small):
    # entity 0 in chunks 0 and 1, entity 1 in chunk 1: half of the mass follows an edge
    graph = small.graph_of(2, [], [(0, 0), (0, 1), (1, 1)], chunks=3)
    found = ppr(graph, Nodes.of_rows([([0], [2.0])]), damping=0.5, passage_edge=1.0)
    scores = dict(small.pairs(found.row(0)))
    assert (
        set(scores) == {0, 1} and scores[1] > scores[0]
    )  # chunk 1 gets some of it back by entity 1, and chunk 2 nothing
    whole = with_passages(graph, edge=1.0).toarray()
    assert whole.shape == (5, 5) and (whole == whole.T).all()
    assert whole[0, 2] == whole[0, 3] == whole[1, 3] == 1.0 and whole[:, 4].sum() == 0.0


def test_passages_alone_begin_no_walk_and_do_not_hang_on_each_other(small, same):
    graph = small.graph_of(2, [(0, 1, "fact", 1.0)], [(0, 0), (1, 1)], chunks=2)
    seeds, dense = Nodes.of_rows([([0], [1.0]), ([], []), ([1], [-1.0])]), Chunks.of_rows([([0, 1], [0.1, 0.9])] * 3)
    found = ppr(graph, seeds, dense)
    assert [len(row.ids) for row in found] == [2, 0, 0]
    same(found.take([0]), ppr(graph, seeds.take([0]), dense.take([0])))
    assert ppr(graph, seeds, dense, top_k=1).row(0).ids.tolist() == found.row(0).ids[:1].tolist()


def test_without_passage_edges_what_the_passages_restart_with_is_theirs(small):
    graph = small.graph_of(1, [], [(0, 0)], chunks=2)
    found = ppr(graph, Nodes.of_rows([([0], [1.0])]), Chunks.of_rows([([0, 1], [0.5, 0.7])]), passage_edge=0.0)
    assert small.pairs(found.row(0)) == [(1, pytest.approx(0.05 / 1.05))]


def test_a_range_of_one_value_is_one():
    assert unit_range(np.array([0.3, 0.3]), 0.3, 0.3).tolist() == [1.0, 1.0]
    assert unit_range(np.array([1.0, 3.0]), 1.0, 3.0).tolist() == [0.0, 1.0]


def test_otherwise_is_the_second_where_the_first_is_empty(small):
    first, second = Chunks.of_rows([([4], [0.1]), ([], [])]), Chunks.of_rows([([1, 2], [9.0, 3.0])] * 2)
    found = otherwise(first, second)
    assert [small.pairs(row) for row in found] == [[(4, 0.1)], [(1, 9.0), (2, 3.0)]]
    assert [len(row.ids) for row in otherwise(first, second, top_k=1)] == [1, 1]
