"""node.onehop against a walk over a networkx multigraph."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.pipeline.values import Nodes, Relationships
from operators.node.onehop import onehop


def multigraph(graph, kinds):
    made = nx.MultiGraph()
    made.add_nodes_from(range(graph.n_nodes))
    for number, edge in enumerate(graph.relationships.to_pylist()):
        if edge["kind"] in kinds:
            made.add_edge(edge["source"], edge["target"], key=number)
    return made


def reached(walked, seeds, allowed, include_seeds):
    best = dict(seeds) if include_seeds else {}
    for seed, score in seeds.items():
        for _, other, key in walked.edges(seed, keys=True):
            if other not in seeds and (allowed is None or key in allowed):
                best[other] = max(score, best.get(other, score))
    return best


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kinds=st.sampled_from([("fact",), ("synonym",), ("fact", "synonym"), ("member",)]),
    given_too=st.booleans(),
    include_seeds=st.booleans(),
    top_k=st.sampled_from([None, 1, 3, 50]),
)
def test_equals_networkx(small, seed, kinds, given_too, include_seeds, top_k):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    related = small.random_rows(seed + 1, graph.n_relationships)
    found = onehop(
        graph,
        Nodes.of_rows(rows),
        Relationships.of_rows(related) if given_too else None,
        kinds=kinds,
        include_seeds=include_seeds,
        top_k=top_k,
    )
    walked = multigraph(graph, kinds)
    for row, seeds, allowed in zip(found, map(small.naive, rows), related, strict=True):
        best = reached(walked, seeds, set(allowed[0]) if given_too else None, include_seeds)
        assert small.pairs(row) == small.ranked(best, top_k)


def test_by_hand(small):
    graph = small.graph_of(
        5, [(0, 1, "fact", 1.0), (2, 0, "fact", 1.0), (0, 0, "fact", 1.0), (1, 3, "fact", 1.0), (0, 4, "synonym", 1.0)]
    )
    seeds = Nodes.of_rows([([1, 0], [0.5, 0.9]), ([4], [1.0])])
    assert [small.pairs(row) for row in onehop(graph, seeds)] == [[(2, 0.9), (3, 0.5)], []]
    assert small.pairs(onehop(graph, seeds, include_seeds=True).row(0)) == [(0, 0.9), (2, 0.9), (1, 0.5), (3, 0.5)]
    assert small.pairs(onehop(graph, seeds, kinds=("synonym",)).row(1)) == [(0, 1.0)]
    only = Relationships.of_rows([([3, 4], [1.0, 1.0]), ([], [])])
    assert small.pairs(onehop(graph, seeds, only).row(0)) == [(3, 0.5)]


def test_a_kind_that_is_none_serves_no_question(small):
    with pytest.raises(OperatorFailure, match="'facts'"):
        onehop(small.graph_of(1, []), Nodes.empty(1), kinds=("facts",))
