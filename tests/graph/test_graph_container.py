"""The graph container: what is saved is what is opened, and the undirected view against networkx."""

import mmap

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.graph.graph import KINDS, Graph, incidence
from graphrag_bench.store.arrays import load_arrays, save_arrays


def made(names, edges, node_chunk, edge_chunk, attributes=("node.name", "relationship.weight")):
    return Graph(
        nodes=pa.table({"name": pa.array(names, pa.string())}),
        relationships=pa.table(
            {
                "source": pa.array([e[0] for e in edges], pa.int32()),
                "target": pa.array([e[1] for e in edges], pa.int32()),
                "kind": pa.array([e[2] for e in edges], pa.string()),
                "name": pa.array([e[3] for e in edges], pa.string()),
                "weight": pa.array([e[4] for e in edges], pa.float32()),
            }
        ),
        node_chunk=sparse.csr_array(np.asarray(node_chunk, np.float32)),
        relationship_chunk=sparse.csr_array(np.asarray(edge_chunk, np.float32)),
        attributes=frozenset(attributes),
    )


FULL = made(
    ["Ada", "Norhaven Ø", "北京", "कला ❤️", ""],
    [
        (0, 1, "fact", "built", 2.0),
        (0, 1, "fact", "loves", 1.0),
        (1, 0, "synonym", "synonym of", 0.8125),
        (2, 2, "fact", "is", 1.0),
        (3, 2, "is_a", "είναι", 1.5),
    ],
    [[1, 0], [1, 1], [0, 0], [0, 1], [0, 0]],
    [[1, 0], [1, 1], [0, 0], [0, 0], [0, 1]],
)


def round_trip(graph, folder):
    folder.mkdir(exist_ok=True)
    graph.save(folder)
    return Graph.open(folder)


def equal(one, two):
    assert one.nodes.to_pydict() == two.nodes.to_pydict()
    assert one.relationships.to_pydict() == two.relationships.to_pydict()
    assert one.attributes == two.attributes
    for name in ("node_chunk", "relationship_chunk"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.toarray(), b.toarray())


@pytest.mark.parametrize(
    "graph",
    [
        FULL,
        made(["alone"], [], [[1.0]], np.zeros((0, 1))),
        made([], [], np.zeros((0, 3)), np.zeros((0, 3)), attributes=()),
    ],
    ids=["unicode", "no relationships", "nothing"],
)
def test_what_is_saved_is_what_is_opened(graph, tmp_path):
    opened = round_trip(graph, tmp_path / "graph")
    equal(graph, opened)
    assert opened.statistics() == graph.statistics()
    assert opened.adjacency().toarray().tolist() == graph.adjacency().toarray().tolist()
    assert opened.kinds.tolist() == graph.kinds.tolist()
    equal(opened, round_trip(opened, tmp_path / "again"))


def test_saving_twice_gives_the_same_bytes_of_arrays(tmp_path):
    round_trip(FULL, tmp_path / "a")
    round_trip(FULL, tmp_path / "b")
    assert (tmp_path / "a/incidence.npz").read_bytes() == (tmp_path / "b/incidence.npz").read_bytes()


def test_arrays_are_opened_as_read_only_memory_maps(tmp_path):
    arrays = {
        "numbers": np.arange(6.0).reshape(2, 3),
        "näme.indices": np.arange(3, dtype=np.int32),
        "none": np.empty((0, 4), np.float32),
        "one": np.array([7], np.int8),
        "column first": np.asfortranarray(np.arange(6).reshape(2, 3)),
    }
    save_arrays(tmp_path / "some.npz", arrays)
    opened = load_arrays(tmp_path / "some.npz")
    assert list(opened) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(opened[name], array)
        assert opened[name].dtype == array.dtype
    assert isinstance(opened["numbers"].base, mmap.mmap)
    with pytest.raises(ValueError, match="read-only"):
        opened["numbers"][0, 0] = 1.0
    with np.load(tmp_path / "some.npz", allow_pickle=False) as plain:  # numpy itself reads it as well
        np.testing.assert_array_equal(plain["numbers"], arrays["numbers"])


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 7), data=st.data(), weighted=st.booleans())
def test_the_undirected_view_equals_networkx(n, data, weighted):
    node = st.integers(0, n - 1)
    edges = data.draw(
        st.lists(
            st.tuples(node, node, st.sampled_from(KINDS), st.just("r"), st.sampled_from([0.25, 1.0, 2.5])), max_size=12
        )
    )
    graph = made([f"n{i}" for i in range(n)], edges, np.zeros((n, 1)), np.zeros((len(edges), 1)))
    simple = nx.Graph()
    simple.add_nodes_from(range(n))
    for a, b, _, _, weight in edges:
        if a != b:
            simple.add_edge(a, b, weight=(simple.edges[a, b]["weight"] if simple.has_edge(a, b) else 0) + weight)
    expected = nx.to_numpy_array(simple, weight="weight" if weighted else None)
    found = graph.adjacency(weighted)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.has_sorted_indices
    assert graph.adjacency(weighted) is found
    facts = graph.statistics()
    assert facts["isolated_nodes"] == nx.number_of_isolates(simple)
    assert facts["mean_degree"] == round(2 * simple.number_of_edges() / n, 3)
    assert facts["by_kind"] == {kind: count for kind in KINDS if (count := sum(edge[2] == kind for edge in edges))}


def test_statistics_by_hand():
    assert FULL.statistics() == {
        "nodes": 5,
        "relationships": 5,
        "by_kind": {"fact": 3, "synonym": 1, "is_a": 1},
        "chunks": 2,
        "chunks_without_node": 0,
        "isolated_nodes": 1,
        "mean_degree": 0.8,  # 0-1 and 3-2 join four ends
    }
    assert FULL.names([2, 0, 2]) == ["北京", "Ada", "北京"]
    assert FULL.names([]) == []
    assert FULL.facts.tolist() == [0, 1, 3]
    assert FULL.adjacency()[0, 1] == pytest.approx(3.8125)
    assert FULL.adjacency(weighted=False)[0, 1] == 1.0


def test_incidence_is_binary_and_merges_what_is_said_twice():
    found = incidence(np.array([2, 0, 2, 2]), np.array([1, 0, 1, 0]), (3, 2))
    assert found.toarray().tolist() == [[1, 0], [0, 0], [1, 1]]
    assert found.nnz == 3
    assert incidence(np.array([], int), np.array([], int), (0, 2)).shape == (0, 2)
