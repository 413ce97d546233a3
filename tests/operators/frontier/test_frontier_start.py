"""frontier.start: nodes become where walks stand."""

from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Reach
from operators.frontier.start import start


def test_nodes_become_items_without_a_relationship():
    nodes = Nodes.of_rows([([3, 1], [0.5, 0.9]), ([], []), ([2], [-0.1])], {1: "earlier"})
    found = start(nodes)
    assert found.rows == ((Reach(1, -1, 0, 0.9), Reach(3, -1, 0, 0.5)), (), (Reach(2, -1, 0, -0.1),))
    assert dict(found.failed) == {1: "earlier"}
    assert start(nodes, top_k=1).rows == ((Reach(1, -1, 0, 0.9),), (), (Reach(2, -1, 0, -0.1),))


def test_the_nodes_of_the_frontier_are_the_nodes_again(same):
    nodes = Nodes.of_rows([([3, 1, 4], [0.5, 0.9, 0.5])])
    same(start(nodes).nodes(), nodes)
