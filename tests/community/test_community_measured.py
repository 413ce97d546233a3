"""Hierarchies as metrics see them, level by level."""

import numpy as np
import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import chosen_metrics, community_metric
from graphrag_bench.evaluation.communities import community_quality
from graphrag_bench.evaluation.divisions import divide
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import incidence
from graphrag_bench.registry import REGISTRY

NONE = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


# two roots; the first was divided, the second was not; node 6 is in none
COMMUNITIES = ((0, -1, [0, 1, 2, 3]), (0, -1, [4, 5]), (1, 0, [0, 2]), (1, 0, [1, 3]))


def test_a_level_takes_what_above_it_was_not_divided(small):
    two_levels = small.hierarchy_of(7, *COMMUNITIES)
    vectors = np.eye(7, dtype=np.float32)
    assert divide(two_levels, 0, vectors, NONE).labels.tolist() == [0, 0, 0, 0, 1, 1, -1]
    fine = divide(two_levels, 1, vectors, NONE)
    assert fine.labels.tolist() == [1, 2, 1, 2, 0, 0, -1]
    assert fine.sizes.tolist() == [2, 2, 2] and fine.order.tolist() == [4, 5, 0, 2, 1, 3]
    assert np.allclose(fine.means[1], (vectors[0] + vectors[2]) / 2)


def test_communities_that_share_nodes_are_refused(small):
    shared = small.hierarchy_of(3, (0, -1, [0, 1]), (0, -1, [1, 2]))
    with pytest.raises(UserError, match="At level 0 1 nodes are in several communities"):
        divide(shared, 0, np.eye(3, dtype=np.float32), NONE)


def test_every_level_is_measured_and_the_finest_is_the_cells(small):
    graph = small.graph_of(7, [(0, 2), (1, 3), (4, 5), (0, 1)])
    graph = graph.with_communities(small.hierarchy_of(7, *COMMUNITIES), None)
    found = community_quality(graph, np.eye(7, dtype=np.float32), ["chi", "modularity"])
    coarse, fine = found.to_json()["levels"]
    assert coarse["sizes"] == {
        "communities": 2, "nodes": 6, "median": 3.0, "mean": 3.0, "largest": 4, "singletons": 0,
        "share_in_largest": round(4 / 6, 6),
    }  # fmt: skip
    assert list(fine["metrics"]) == ["count", "clustered", "chi", "modularity"]
    assert fine["metrics"]["modularity"] == round(3 / 4 - (3**2 + 3**2 + 2**2) / 8**2, 6)
    assert found.cell_metrics()["community/count"] == {"value": 3.0, "n": None, "ci": None}


def test_a_graph_in_which_no_community_was_found(small):
    empty = Hierarchy(np.empty(0, np.int32), np.empty(0, np.int32), incidence(NONE[0], NONE[0], (0, 2)))
    found = community_quality(small.graph_of(2, []).with_communities(empty, None), np.eye(2, dtype=np.float32), ["chi"])
    assert found.to_json() == {"nodes": 2, "finest": None, "levels": []} and found.cell_metrics() == {}


def test_names():
    assert chosen_metrics([]) == []
    assert [one.name for one in chosen_metrics(["chi", "count", "chi"])] == ["count", "clustered", "chi"]
    assert community_metric("community/chi") is community_metric("chi")
    with pytest.raises(UserError, match="Did you mean silhouette"):
        community_metric("silhouete")


def test_every_metric_of_communities_says_what_it_is():
    for component in REGISTRY.all("community_metric"):
        assert component.extra["direction"] in ("higher", "lower", "")
        assert component.extra["format"] in ("percent", "fraction", "number", "count")
        assert component.extra["label"] and component.extra["description"].endswith(".")
