"""Hierarchical Leiden: what every hierarchy must be, and what networkx says of the partition."""

import gzip
import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.community.clusterers.leiden import leiden
from graphrag_bench.community.division import divide_again
from graphrag_bench.community.simple import simple_edges
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import Hierarchy

ENGINES = ("igraph", "leidenalg")


def nodes_of(hierarchy, level=None):
    chosen = range(len(hierarchy)) if level is None else np.flatnonzero(hierarchy.level == level)
    return [hierarchy.nodes(int(c)).tolist() for c in chosen]


def bytes_of(hierarchy):
    members = hierarchy.members
    return tuple(
        a.tobytes() for a in (hierarchy.level, hierarchy.parent, members.indptr, members.indices, members.data)
    )


def simple_graph(graph):
    left, right, weight = simple_edges(graph)
    made = nx.Graph()
    made.add_nodes_from(range(graph.n_nodes))
    made.add_weighted_edges_from(zip(left.tolist(), right.tolist(), weight.tolist(), strict=True))
    return made


def check(hierarchy, joined, max_size, divisible=lambda nodes: True):
    """Every level partitions what it covers; a child lies in its parent; ids go by level, then by smallest node."""
    n = hierarchy.members.shape[1]
    firsts = [nodes[0] for nodes in nodes_of(hierarchy)]
    assert list(zip(hierarchy.level.tolist(), firsts, strict=True)) == sorted(
        zip(hierarchy.level.tolist(), firsts, strict=True)
    )
    for level in range(int(hierarchy.level.max(initial=-1)) + 1):
        flat = list(itertools.chain(*nodes_of(hierarchy, level)))
        assert len(flat) == len(set(flat))
        cover = sorted(itertools.chain(*(hierarchy.nodes(int(c)).tolist() for c in hierarchy.at(level))))
        assert cover == sorted(joined)
    assert hierarchy.members.shape == (len(hierarchy), n)
    for community in range(len(hierarchy)):
        parent, mine = int(hierarchy.parent[community]), set(hierarchy.nodes(community).tolist())
        if parent >= 0:
            assert hierarchy.level[community] == hierarchy.level[parent] + 1
            assert mine < set(hierarchy.nodes(parent).tolist())
        else:
            assert hierarchy.level[community] == 0
        children = hierarchy.children(community)
        if len(children):
            assert len(mine) > max_size
            assert len(children) > 1
            assert set(itertools.chain(*(hierarchy.nodes(int(c)).tolist() for c in children))) == mine
        elif len(mine) > max_size:
            assert not divisible(sorted(mine))


graphs = st.integers(1, 24).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=60
        ),
    )
)


@settings(max_examples=60, deadline=None)
@given(graphs, st.integers(1, 6), st.sampled_from(ENGINES), st.integers(0, 3))
def test_every_hierarchy_is_one(small, drawn, max_size, engine, seed):
    n, edges = drawn
    graph = small.graph_of(n, edges)
    found = leiden(graph, max_size=max_size, engine=engine, seed=seed)
    plain = simple_graph(graph)
    joined = [node for node in plain if plain.degree(node)]
    again = bytes_of(leiden(graph, max_size=max_size, engine=engine, seed=seed))
    assert bytes_of(found) == again
    for nodes in nodes_of(found):
        assert nx.is_connected(plain.subgraph(nodes))

    def divisible(nodes):
        part = small.graph_of(n, [(a, b, w["weight"]) for a, b, w in plain.subgraph(nodes).edges(data=True)])
        return len(leiden(part, max_size=n, engine=engine, seed=seed)) > 1

    check(found, joined, max_size, divisible)
    assert found.statistics()["nodes_without_community"] == n - len(joined)
    own = leiden(graph, max_size=max_size, engine=engine, seed=seed, isolated="own")
    check(own, range(n), max_size, divisible)
    assert len(own) == len(found) + n - len(joined)


def planted(small, groups=4, size=8, seed=3):
    rng = np.random.default_rng(seed)
    edges = []
    for a, b in itertools.combinations(range(groups * size), 2):
        if rng.random() < (0.8 if a % groups == b % groups else 0.02):
            edges.append((a, b))
    return small.graph_of(groups * size, edges)


@pytest.mark.parametrize("engine", ENGINES)
def test_planted_communities_are_found(small, engine):
    found = leiden(planted(small), engine=engine)
    assert nodes_of(found, 0) == [list(range(first, 32, 4)) for first in range(4)]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_partition_is_as_good_as_networkx_and_igraph_say(small, engine):
    rng = np.random.default_rng(5)
    edges = [
        (int(a), int(b), float(w)) for a, b, w in zip(*rng.integers(0, 60, (2, 180)), rng.random(180), strict=True)
    ]
    graph = small.graph_of(60, edges)
    plain = simple_graph(graph)
    parts = nodes_of(leiden(graph, engine=engine, isolated="own"), 0)
    ours = nx.community.modularity(plain, parts)
    label = {node: number for number, part in enumerate(parts) for node in part}
    left, right, weight = simple_edges(graph)
    theirs = igraph.Graph(n=60, edges=np.column_stack([left, right])).modularity(
        [label[node] for node in range(60)], weights=weight.tolist()
    )
    assert ours == pytest.approx(theirs)
    louvain = nx.community.louvain_communities(plain, seed=0)
    assert ours >= nx.community.modularity(plain, louvain) - 0.02


def test_parallel_and_contrary_relationships_weigh_together_and_loops_nothing(small):
    graph = small.graph_of(4, [(0, 1, 1.0), (1, 0, 2.0), (2, 2, 9.0), (2, 3, 0.0), (1, 2, -1.0)])
    left, right, weight = simple_edges(graph)
    assert (left.tolist(), right.tolist(), weight.tolist()) == ([0], [1], [3.0])
    found = leiden(graph)
    assert nodes_of(found) == [[0, 1]]
    assert found.statistics()["nodes_without_community"] == 2


def test_only_the_kinds_asked_for_are_walked(small):
    graph = small.graph_of(4, [(0, 1), (2, 3, 1.0, "s", "", "synonym")])
    assert nodes_of(leiden(graph)) == [[0, 1]]
    assert nodes_of(leiden(graph, kinds=["fact", "synonym"])) == [[0, 1], [2, 3]]


def test_every_component_is_covered(small):
    triangle = [(0, 1), (1, 2), (2, 0)]
    graph = small.graph_of(9, [*triangle, *((a + 4, b + 4) for a, b in triangle), (7, 8)])
    assert nodes_of(leiden(graph)) == [[0, 1, 2], [4, 5, 6], [7, 8]]
    assert nodes_of(leiden(graph, isolated="own")) == [[0, 1, 2], [3], [4, 5, 6], [7, 8]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_star_is_not_divided_however_large(small, engine):
    found = leiden(small.graph_of(40, [(0, leaf) for leaf in range(1, 40)]), engine=engine)
    assert nodes_of(found) == [list(range(40))]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_graph_without_relationships_has_no_community(small, n):
    found = leiden(small.graph_of(n, []))
    assert len(found) == 0 and found.members.shape == (0, n)
    assert found.statistics()["nodes_without_community"] == n
    assert nodes_of(leiden(small.graph_of(n, []), isolated="own")) == [[node] for node in range(n)]


def test_a_hierarchy_without_communities_is_saved_and_opened(small, tmp_path):
    leiden(small.graph_of(3, [])).save(tmp_path)
    assert len(Hierarchy.open(tmp_path)) == 0


def test_max_levels_bounds_the_hierarchy(small):
    graph = planted(small, groups=6, size=12)
    deep = leiden(graph, max_size=3)
    assert deep.level.max() >= 1
    flat = leiden(graph, max_size=3, max_levels=1)
    assert nodes_of(flat) == nodes_of(deep, 0)
    assert (flat.parent == -1).all()


def test_a_higher_resolution_gives_more_communities(small):
    graph = planted(small)
    for engine in ENGINES:
        assert len(leiden(graph, engine=engine, resolution=4.0, max_size=99)) > len(
            leiden(graph, engine=engine, max_size=99)
        )


def test_nothing_but_the_seed_and_the_graph_decides(small):
    """Not Python's random, not numpy's, not igraph's generator before, not what runs beside it; nor does it move them on."""
    rng = np.random.default_rng(1)
    graph = small.graph_of(120, [tuple(map(int, pair)) for pair in rng.integers(0, 120, (300, 2))])
    expected = bytes_of(leiden(graph, seed=7))
    random.seed(99)
    igraph.Graph.Erdos_Renyi(n=30, m=60).community_leiden("modularity")
    state = random.getstate()
    assert bytes_of(leiden(graph, seed=7)) == expected
    assert random.getstate() == state
    before = random.random()
    random.setstate(state)
    igraph.Graph.Erdos_Renyi(n=5, m=5)
    assert random.random() != before  # igraph draws from Python's random again
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: bytes_of(leiden(graph, seed=seed)), [7, 1, 7, 2, 7, 3]))
    assert {found[0], found[2], found[4]} == {expected}
    assert found[1] == bytes_of(leiden(graph, seed=1))


def test_a_part_is_divided_by_the_edges_within_it_alone():
    """Nodes 1 to 6 on a path; whatever has several nodes is cut in the middle, and node 0 stands alone."""
    asked = []

    def halves(nodes, edges, weights):
        asked.append((nodes, edges.tolist(), weights.tolist()))
        return np.where(np.arange(nodes) < nodes // 2, 5, -2)  # any labels

    path = (np.arange(1, 6), np.arange(2, 7), np.arange(1.0, 6.0))
    found = divide_again(7, np.arange(1, 7), path, halves, 1, alone=np.array([0]))
    assert nodes_of(found) == [[0], [1, 2, 3], [4, 5, 6], [1], [2, 3], [4], [5, 6], [2], [3], [5], [6]]
    assert found.level.tolist() == [0] * 3 + [1] * 4 + [2] * 4
    assert found.parent.tolist() == [-1, -1, -1, 1, 1, 2, 2, 4, 4, 6, 6]
    assert asked == [
        (6, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]], [1.0, 2.0, 3.0, 4.0, 5.0]),
        (3, [[0, 1], [1, 2]], [1.0, 2.0]),
        (3, [[0, 1], [1, 2]], [4.0, 5.0]),
        (2, [[0, 1]], [2.0]),
        (2, [[0, 1]], [5.0]),
    ]


@pytest.mark.shared
def test_a_real_graph(shared_data, small):
    def rows(name):
        with gzip.open(shared_data / "graphrag_christmas_carol" / f"{name}.jsonl.gz", "rt") as lines:
            return [json.loads(line) for line in lines]

    ids = {row["title"]: number for number, row in enumerate(rows("entities"))}
    edges = [
        (ids[r["source"]], ids[r["target"]], r["weight"])
        for r in rows("relationships")
        if r["source"] in ids and r["target"] in ids
    ]
    graph = small.graph_of(len(ids), edges)
    plain = simple_graph(graph)
    found = leiden(graph)
    check(found, [node for node in plain if plain.degree(node)], 10, lambda nodes: len(nodes) > 40)
    facts = found.statistics()
    # theirs has 23, 65, 32 and 2 communities, of the largest component alone
    assert 10 <= facts["by_level"]["0"] <= 40 and 40 <= facts["by_level"]["1"] <= 100
    theirs = [row["entity_ids"] for row in rows("communities") if row["level"] == 0]
    node = {row["id"]: number for number, row in enumerate(rows("entities"))}
    covered = [[node[entity] for entity in part] for part in theirs]
    rest = set(plain) - {one for part in covered for one in part}
    modularity = nx.community.modularity(plain, [*covered, *([one] for one in sorted(rest))])
    mine = nx.community.modularity(plain, [*nodes_of(found, 0), *([one] for one in plain if not plain.degree(one))])
    assert mine > modularity - 0.02


@pytest.mark.parametrize(
    "setting", [{"max_size": 0}, {"resolution": 0.0}, {"resolution": float("nan")}, {"max_levels": 0}, {"iterations": 0}]
)
def test_settings_out_of_range_are_refused(small, setting):
    (name,) = setting
    with pytest.raises(UserError, match=f"community.{name} is"):
        leiden(small.graph_of(2, [(0, 1, 1.0)]), **setting)
