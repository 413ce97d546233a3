"""subgraph.grow: paths follow what a frontier walked."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Frontier, Path, Reach, Subgraphs
from operators.subgraph.grow import grow

# 0 -r0-> 1 -r1-> 2 <-r2- 3
EDGES = [(0, 1, "fact", 1.0), (1, 2, "fact", 1.0), (3, 2, "fact", 1.0)]


def test_a_walk_by_hand(small):
    graph = small.graph_of(4, EDGES)
    begun = grow(graph, Frontier([[Reach(0, score=0.9), Reach(3, score=0.8)], []]))
    assert begun.rows == ((Path((0,), score=0.9), Path((3,), score=0.8)), ())
    one = grow(graph, Frontier([[Reach(1, 0, FORWARD, 0.5)], []]), begun)
    # 3 led nowhere, and a node by itself is not kept beside a fact
    assert one.rows == ((Path((0, 1), (0,), (FORWARD,), 0.5),), ())
    two = grow(graph, Frontier([[Reach(2, 1, FORWARD, 0.25), Reach(0, 0, BACKWARD, 0.5)], []]), one)
    assert two.rows[0] == (
        Path((0, 1, 0), (0, 0), (FORWARD, BACKWARD), 0.5),
        Path((0, 1, 2), (0, 1), (FORWARD, FORWARD), 0.25),
    )
    three = grow(graph, Frontier([[Reach(3, 2, BACKWARD, 0.1)], []]), two)
    # one path grows, the other stays
    assert three.rows[0] == (
        Path((0, 1, 0), (0, 0), (FORWARD, BACKWARD), 0.5),
        Path((0, 1, 2, 3), (0, 1, 2), (FORWARD, FORWARD, BACKWARD), 0.1),
    )
    assert three.relationships().row(0).ids.tolist() == [0, 1, 2]


def test_an_item_without_a_path_begins_one_and_nothing_reached_keeps_all(small):
    graph = small.graph_of(4, EDGES)
    alone = grow(graph, Frontier([[Reach(2, 2, FORWARD, 0.7)]]))
    assert alone.rows == ((Path((3, 2), (2,), (FORWARD,), 0.7),),)
    kept = Subgraphs([[Path((0,), score=0.4)], [Path((0, 1), (0,), (FORWARD,), 0.4)]])
    assert grow(graph, Frontier([[], []]), kept).rows == kept.rows


def test_failures_are_carried(small):
    graph = small.graph_of(4, EDGES)
    found = grow(graph, Frontier([[], []], {0: "a"}), Subgraphs([[], []], {1: "b"}))
    assert dict(found.failed) == {0: "a", 1: "b"}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_paths_are_walks_that_hold_every_fact_walked(small, seed):
    rng = np.random.default_rng(seed)
    graph = small.random_graph(seed)
    at = [Reach(int(rng.integers(graph.n_nodes)))]
    paths = grow(graph, Frontier([at]))
    walked = set()
    for _ in range(3):
        steps = []
        for item in at:
            for fact in graph.facts.tolist():
                for direction, here, there in ((1, graph.sources, graph.targets), (-1, graph.targets, graph.sources)):
                    if here[fact] == item.node and rng.random() < 0.3:
                        steps.append(Reach(int(there[fact]), fact, direction, float(rng.integers(1, 4))))
        at = steps[:6]
        walked |= {item.relationship for item in at}
        paths = grow(graph, Frontier([at]), paths)
        assert {fact for path in paths.rows[0] for fact in path.relationships} == walked
        for path in paths.rows[0]:
            assert len(path.nodes) == len(path.relationships) + 1 == len(path.directions) + 1
            for here, fact, direction, there in zip(
                path.nodes, path.relationships, path.directions, path.nodes[1:], strict=False
            ):
                ends = (graph.sources[fact], graph.targets[fact])[::direction]
                assert ends == (here, there)
