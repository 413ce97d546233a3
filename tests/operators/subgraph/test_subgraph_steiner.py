"""subgraph.steiner against G-Retriever's reduction written as loops, with pcst_fast on the whole graph."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph import steiner as module
from graphrag_bench.pipeline.values import Nodes, Relationships
from graphrag_bench.pipeline.walks import Path
from operators.subgraph.steiner import steiner

needs_pcst_fast = pytest.mark.skipif(
    module.pcst_fast_fault() is not None, reason=f"pcst_fast {module.pcst_fast_fault()}"
)
SOLVERS = [pytest.param("pcst_fast", marks=needs_pcst_fast), "rustworkx"]


def by_loops(graph, nodes, relationships, k, k_e, cost):
    """Nodes and relationships of the tree: prizes and reduction relationship by relationship."""
    import pcst_fast

    prizes = [0.0] * graph.n_nodes
    top = nodes[:k]
    for place, (node, _) in enumerate(top):
        prizes[node] = float(len(top) - place)
    ids = [n for n in graph.facts.tolist() if graph.sources[n] != graph.targets[n]]
    given_scores = {n: s for n, s in relationships if n in ids}
    edge_prize = dict.fromkeys(ids, 0.0)
    distinct = sorted(set(given_scores.values()), reverse=True)[:k_e]
    last = float(len(distinct))
    for place, value in enumerate(distinct):
        same = [n for n, s in given_scores.items() if s == value]
        for n in same:
            edge_prize[n] = min((len(distinct) - place) / len(same), last)
        last = edge_prize[same[0]] * (1 - 0.01)
    if not top and not any(prize > cost for prize in edge_prize.values()):
        return None
    plain = [n for n in ids if edge_prize[n] <= cost]
    virtual = [n for n in ids if edge_prize[n] > cost]
    edges = [(graph.sources[n], graph.targets[n]) for n in plain]
    costs = [cost - edge_prize[n] for n in plain]
    for place, n in enumerate(virtual):
        made = graph.n_nodes + place
        edges += [(graph.sources[n], made), (made, graph.targets[n])]
        costs += [0.0, 0.0]
        prizes.append(edge_prize[n] - cost)
    if not edges:
        return {int(np.argmax(prizes))}, set()
    vertices, taken = pcst_fast.pcst_fast(np.array(edges, np.int64), np.array(prizes), np.array(costs), -1, 1, "gw", 0)
    chosen = {plain[e] for e in taken if e < len(plain)} | {
        virtual[v - graph.n_nodes] for v in vertices if v >= graph.n_nodes
    }
    ends = {int(end) for n in chosen for end in (graph.sources[n], graph.targets[n])}
    return {int(v) for v in vertices if v < graph.n_nodes} | ends, chosen


def wide_graph(small, seed):
    """A graph of several components, large enough that what is far is not handed to the solver."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 120))
    count = int(rng.integers(n // 2, 2 * n))
    ends = np.stack(
        [rng.integers(0, n, count), np.minimum(rng.integers(0, n, count), rng.integers(0, n, count))], axis=1
    )
    return small.graph_of(n, [(int(a), int(b), str(rng.choice(["fact"] * 5 + ["synonym"])), 1.0) for a, b in ends])


@needs_pcst_fast
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    wide=st.booleans(),
    k=st.integers(0, 4),
    k_e=st.integers(0, 5),
    cost=st.sampled_from([0.5, 1.0, 0.2, 0.0]),
)
def test_equals_pcst_fast_on_the_whole_graph(small, seed, wide, k, k_e, cost):
    graph = wide_graph(small, seed) if wide else small.random_graph(seed)
    nodes = [small.ranked(small.naive(row)) for row in small.random_rows(seed, graph.n_nodes)]
    related = [small.ranked(small.naive(row))[:6] for row in small.random_rows(seed + 1, graph.n_relationships)]
    found = steiner(
        graph,
        Nodes.of_rows([([n for n, _ in row], [s for _, s in row]) for row in nodes]),
        Relationships.of_rows([([n for n, _ in row], [s for _, s in row]) for row in related]),
        top_nodes=k,
        top_relationships=k_e,
        edge_cost=cost,
        solver="pcst_fast",
    )
    for row, one, two in zip(found.rows, nodes, related, strict=True):
        if not k_e:
            two = []
        wanted = by_loops(graph, one, two, k, k_e, cost)
        if wanted is None:
            assert row == ()
        else:
            (path,) = row
            assert (set(path.nodes), set(path.relationships)) == wanted
            assert len(path.nodes) == len(wanted[0])


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), wide=st.booleans())
def test_it_is_one_connected_piece_as_visited(small, seed, wide, solver):
    graph = wide_graph(small, seed) if wide else small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes), small.random_rows(seed + 1, graph.n_relationships)
    found = steiner(graph, Nodes.of_rows(rows[0]), Relationships.of_rows(rows[1]), solver=solver)
    for row in found.rows:
        for path in row:
            made = nx.MultiGraph()
            made.add_nodes_from(path.nodes)
            made.add_edges_from((int(graph.sources[n]), int(graph.targets[n])) for n in path.relationships)
            assert nx.is_connected(made)
            assert made.number_of_nodes() == len(path.nodes)
            seen = {path.nodes[0]}
            for node in path.nodes[1:]:  # every node touches one that was visited before it
                assert seen & set(made.neighbors(node))
                seen.add(node)
            assert path.score == 1.0
            assert path.directions == (1,) * len(path.relationships)


@pytest.mark.parametrize("solver", SOLVERS)
def test_by_hand(small, solver):
    # a line 0 - 1 - 2 - 3 - 4 with a cost of 1/2 a step; 0 has prize 3, 2 has prize 2, 4 has prize 1
    line = small.graph_of(5, [(n, n + 1, "fact", 1.0) for n in range(4)])
    nodes = Nodes.of_rows([([0, 2, 4], [0.9, 0.8, 0.7])])
    none = Relationships.empty(1)
    whole = steiner(line, nodes, none, solver=solver)
    assert whole.rows == ((Path((0, 1, 2, 3, 4), (0, 1, 2, 3), (1, 1, 1, 1), 1.0),),)
    # at a cost of 0.8 a step the last prize of 1 does not pay for two steps, that of 2 does
    dear = steiner(line, nodes, none, edge_cost=0.8, solver=solver)
    if solver == "rustworkx":
        assert dear.rows == ((Path((0, 1, 2), (0, 1), (1, 1), 1.0),),)
    # nothing pays
    assert steiner(line, nodes, none, edge_cost=5.0, solver=solver).rows == ((Path((0,), (), (), 1.0),),)


def test_prizes_of_relationships_decay():
    scores = np.array([0.9, 0.9, 0.9, 0.8, 0.7, 0.7])
    # three share 3, and what follows has at most 0.99 of what stands above it
    assert module.similarity_prizes(scores, 3).tolist() == [1.0, 1.0, 1.0, 0.99, 0.5, 0.5]
    assert module.similarity_prizes(scores, 1).tolist() == [1 / 3] * 3 + [0.0] * 3
    assert module.similarity_prizes(np.empty(0), 3).tolist() == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_relationship_worth_more_than_it_costs_is_taken(small, solver):
    graph = small.graph_of(3, [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0)])
    found = steiner(graph, Nodes.empty(1), Relationships.of_rows([([1], [0.9])]), solver=solver)
    assert found.rows == ((Path((1, 2), (1,), (1,), 1.0),),)


def test_without_the_solver_asked_for_it_serves_nobody(small, monkeypatch):
    monkeypatch.setattr(module, "pcst_fast_fault", lambda: "is not installed")
    graph = small.graph_of(2, [(0, 1, "fact", 1.0)])
    nodes = Nodes.of_rows([([0, 1], [1.0, 0.5])])
    with pytest.raises(OperatorFailure, match="pcst_fast is not installed"):
        steiner(graph, nodes, Relationships.empty(1), solver="pcst_fast")
    assert module.solver_name() == "rustworkx"
    assert steiner(graph, nodes, Relationships.empty(1)).rows == ((Path((0, 1), (0,), (1,), 1.0),),)


def test_a_solver_that_answers_wrongly_is_found_out(monkeypatch):
    import sys
    from types import SimpleNamespace

    def first_again_and_again(edges, prizes, costs, *settings):
        return np.zeros(2, np.int32), np.zeros(1, np.int32)

    monkeypatch.setitem(sys.modules, "pcst_fast", SimpleNamespace(pcst_fast=first_again_and_again))
    assert "wrong nodes" in module.pcst_fast_fault.__wrapped__()
    monkeypatch.setitem(sys.modules, "pcst_fast", None)
    assert "not installed" in module.pcst_fast_fault.__wrapped__()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), cost=st.sampled_from([0.25, 0.5, 1.0, 1.5]))
def test_on_a_tree_rustworkx_finds_the_best(small, seed, cost):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    graph = small.graph_of(n, [(int(rng.integers(v)), v, "fact", 1.0) for v in range(1, n)])
    prizes = {int(node): 4.0 - at for at, node in enumerate(rng.permutation(n)[:4])}
    nodes = Nodes.of_rows([(list(prizes), list(prizes.values()))])
    ((path,),) = steiner(graph, nodes, Relationships.empty(1), top_nodes=4, edge_cost=cost, solver="rustworkx").rows
    made = nx.Graph(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    made.add_nodes_from(range(n))
    # with fewer than four nodes the prizes are k, …, 1
    worth = {node: float(len(prizes) - at) for at, node in enumerate(prizes)}
    best = max(
        sum(worth.get(v, 0.0) for v in chosen) - cost * (len(chosen) - 1)
        for size in range(1, n + 1)
        for chosen in combinations(range(n), size)
        if nx.is_connected(made.subgraph(chosen))
    )
    assert sum(worth.get(v, 0.0) for v in path.nodes) - cost * len(path.relationships) == pytest.approx(best)


@pytest.mark.parametrize("solver", SOLVERS)
def test_prizes_may_be_far_apart(small, solver):
    line = small.graph_of(400, [(n, n + 1, "fact", 1.0) for n in range(399)])
    found = steiner(line, Nodes.of_rows([([0, 399], [0.9, 0.8])]), Relationships.empty(1), solver=solver)
    assert found.rows == ((Path((0,), (), (), 1.0),),)
