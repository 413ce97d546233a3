"""subgraph.khop_path against a greedy loop over all of networkx's shortest paths."""

from itertools import combinations, islice, pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Path
from operators.subgraph.khop_path import khop_path


def simple(graph, kinds):
    made = nx.Graph()
    made.add_nodes_from(range(graph.n_nodes))
    for edge in graph.relationships.to_pylist():
        if edge["kind"] in kinds and edge["source"] != edge["target"]:
            made.add_edge(edge["source"], edge["target"])
    return made


def inside(part, whole):
    return any(whole[at : at + len(part)] in (part, part[::-1]) for at in range(len(whole)))


def step(graph, kinds, one, two):
    """The heaviest relationship between two nodes, then the smallest id, and its direction."""
    found = [
        (-edge["weight"], number, 1 if edge["source"] == one else -1)
        for number, edge in enumerate(graph.relationships.to_pylist())
        if edge["kind"] in kinds and {edge["source"], edge["target"]} == {one, two}
    ]
    return min(found)[1:]


def expected(graph, ends, hops, max_paths, per_pair, kinds):
    walked, left, found = simple(graph, kinds), set(ends), []
    while True:
        near = [
            (nx.shortest_path_length(walked, a, b), a, b)
            for a, b in combinations(sorted(left), 2)
            if nx.has_path(walked, a, b)
        ]
        near = [item for item in near if item[0] <= hops]
        if not near:
            break
        _, a, b = min(near)
        for walk in islice(sorted(tuple(p) for p in nx.all_shortest_paths(walked, a, b)), per_pair):
            left -= set(walk)
            longer = [known for known in found if inside(walk, known)]
            parts = [at for at, known in enumerate(found) if inside(known, walk)]
            if parts:
                found[parts[0]] = walk
                found = [known for at, known in enumerate(found) if at not in parts[1:]]
            elif not longer:
                found.append(walk)
    paths = []
    for place, walk in enumerate(found[:max_paths], 1):
        steps = [step(graph, kinds, *pair) for pair in pairwise(walk)]
        paths.append(Path(walk, tuple(s[0] for s in steps), tuple(s[1] for s in steps), 1 / place))
    return paths


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    hops=st.integers(1, 6),
    max_paths=st.sampled_from([None, 1, 3]),
    per_pair=st.sampled_from([1, 2, 5]),
    kinds=st.sampled_from([("fact",), ("fact", "synonym")]),
)
def test_equals_the_greedy_loop(small, seed, hops, max_paths, per_pair, kinds):
    graph = small.random_graph(seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = khop_path(graph, Nodes.of_rows(rows), hops=hops, max_paths=max_paths, per_pair=per_pair, kinds=kinds)
    for row, (ends, _) in zip(found.rows, rows, strict=True):
        assert list(row) == expected(graph, ends, hops, max_paths, per_pair, kinds)


def test_by_hand(small):
    # 0 → 1 ← 2, twice between 0 and 1, the second heavier; 3 and 4 hang on both ends
    graph = small.graph_of(
        5, [(0, 1, "fact", 1.0), (1, 0, "fact", 2.0), (2, 1, "fact", 1.0), (3, 0, "fact", 1.0), (2, 4, "fact", 1.0)]
    )
    assert khop_path(graph, Nodes.of_rows([([0, 2], [1.0, 1.0])])).rows == ((Path((0, 1, 2), (1, 2), (-1, -1), 1.0),),)
    # 0 and 2 are nearer than 3 and 4; the longer path then goes through both and takes the shorter one in
    assert khop_path(graph, Nodes.of_rows([([0, 2, 3, 4], [1.0] * 4)]), hops=5).rows == (
        (Path((0, 3), (3,), (-1,), 1.0), Path((2, 4), (4,), (1,), 1 / 2)),
    )
    assert khop_path(graph, Nodes.of_rows([([0, 2], [1.0, 1.0])]), hops=1).rows == ((),)


def test_a_path_is_merged_into_the_longer_one(small):
    # 1 and 2 are nearest; 0 and 3 are then joined through both of them
    graph = small.graph_of(4, [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0), (2, 3, "fact", 1.0)])
    line = small.graph_of(
        6, [(0, 4, "fact", 1.0), (4, 1, "fact", 1.0), (1, 2, "fact", 1.0), (2, 5, "fact", 1.0), (5, 3, "fact", 1.0)]
    )
    assert [path.nodes for path in khop_path(graph, Nodes.of_rows([([0, 1, 2, 3], [1.0] * 4)])).rows[0]] == [
        (0, 1),
        (2, 3),
    ]
    merged = khop_path(line, Nodes.of_rows([([0, 1, 2, 3], [1.0] * 4)])).rows[0]
    assert merged == (Path((0, 4, 1, 2, 5, 3), (0, 1, 2, 3, 4), (1, 1, 1, 1, 1), 1.0),)


def test_a_path_may_be_longer_than_a_byte_counts(small):
    line = small.graph_of(400, [(n, n + 1, "fact", 1.0) for n in range(399)])
    ((path,),) = khop_path(line, Nodes.of_rows([([0, 399], [1.0, 1.0])]), hops=399).rows
    assert path.nodes == tuple(range(400))
