"""The index over a hierarchy: exact search layer by layer, the same by engines, files, and layers without a report."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.hierarchy import HierarchyIndex, build_layers, community_layers, open_layers
from graphrag_bench.index.vectors import CommunityVectors, NodeVectors
from graphrag_bench.registry import REGISTRY

SIZES = (900, 200, 60, 12, 1)  # entities, then the communities of each layer, the finest first


def unit(rng, n, dim=24):
    made = rng.normal(size=(n, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def graph_of(levels, failed=(), reports=True):
    count = len(levels)
    columns = {name: [""] * count for name in ("title", "summary", "text", "rating_reason")}
    columns |= {"rating": [None] * count, "failed": ["parse: no" if n in failed else None for n in range(count)]}
    hierarchy = Hierarchy(
        np.array(levels, np.int32), np.full(count, -1, np.int32), sparse.csr_array(np.ones((count, 1), np.float32))
    )
    graph = Graph(
        nodes=pa.table({"name": ["n"]}),
        relationships=pa.table(
            {"source": pa.array([], pa.int32()), "target": pa.array([], pa.int32()), "kind": pa.array([], pa.string())}
        ),
        node_chunk=sparse.csr_array((1, 0), dtype=np.float32),
        relationship_chunk=sparse.csr_array((0, 0), dtype=np.float32),
        attributes=frozenset({"node.name"}),
    )
    return graph.with_communities(hierarchy, Reports(pa.table(columns, schema=REPORT_SCHEMA)) if reports else None)


def index_of(seed=0, sizes=SIZES, dim=24, twins=False):
    """Ids of communities are dealt out to the layers at random, so that a place in a layer is never an id."""
    rng = np.random.default_rng(seed)
    nodes, communities = unit(rng, sizes[0], dim), unit(rng, sum(sizes[1:]), dim)
    if twins:
        nodes[1::2] = nodes[0]
        communities[1::3] = communities[0]
    dealt = np.split(rng.permutation(len(communities)), np.cumsum(sizes[1:])[:-1])
    layers = [np.sort(part).astype(np.int64) for part in dealt if len(part)]
    return HierarchyIndex(NodeVectors(nodes, None), CommunityVectors(communities, None), layers), unit(rng, 20, dim)


def brute(index, query, layer, k):
    matrix, ids = (
        (index.communities.matrix, index.layers[layer - 1]) if layer else (index.nodes.matrix, range(len(index.nodes)))
    )
    scored = [(-round(float(matrix[i].astype(np.float64) @ query.astype(np.float64)), 6), int(i)) for i in ids]
    return [(i, -score) for score, i in sorted(scored)[:k]]


def with_engine(index, backend, folder):
    folder.mkdir()
    facts = build_layers(backend, index.matrices, folder)
    again = HierarchyIndex(index.nodes, index.communities, index.layers, open_layers(backend, folder))
    return again, facts


def listed(hits):
    return [[list(zip(ids.tolist(), cosines.tolist(), strict=True)) for ids, cosines in layer] for layer in hits]


def backend(name, **settings):
    if name != "exact":
        pytest.importorskip(name)
    return REGISTRY.get("index", name).call(**settings)


@pytest.mark.parametrize("twins", [False, True])
@pytest.mark.parametrize("k", [1, 5, 15, 2000])
def test_without_an_engine_every_layer_is_as_a_loop_has_it(k, twins):
    index, queries = index_of(twins=twins)
    found = listed(index.nearest(queries, k))
    assert len(found) == len(SIZES)
    for layer, rows in enumerate(found):
        for query, row in zip(queries, rows, strict=True):
            wanted = brute(index, query, layer, k)
            assert [i for i, _ in row] == [i for i, _ in wanted]
            assert [s for _, s in row] == pytest.approx([s for _, s in wanted], abs=1e-9)


@pytest.mark.parametrize("name", ["chnsw", "hnswlib", "faiss"])
@pytest.mark.parametrize("twins", [False, True])
def test_an_engine_finds_nearly_the_same_in_every_layer_and_scores_it_exactly(name, twins, tmp_path):
    index, queries = index_of(1, twins=twins)
    engine, facts = with_engine(index, backend(name), tmp_path / "a")
    for k in (1, 5):
        exact, found = listed(index.nearest(queries, k)), listed(engine.nearest(queries, k))
        for layer, (rows, others) in enumerate(zip(exact, found, strict=True)):
            recall = np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(rows, others, strict=True)])
            assert recall >= 0.98, (layer, k)  # an id counts with its score
    assert facts.get("vectors", sum(SIZES)) == sum(SIZES)
    opened = HierarchyIndex(index.nodes, index.communities, index.layers, open_layers(backend(name), tmp_path / "a"))
    assert listed(opened.nearest(queries, 5)) == listed(engine.nearest(queries, 5))
    one = [listed(opened.nearest(queries[n : n + 1], 5)) for n in range(3)]
    whole = listed(opened.nearest(queries, 5))
    assert [[rows[n] for rows in whole] for n in range(3)] == [[rows[0] for rows in found] for found in one]


@pytest.mark.parametrize("name", ["chnsw", "hnswlib"])
def test_the_same_layers_give_the_same_files(name, tmp_path):
    index, _ = index_of(2, (120, 30, 5))
    for folder in ("a", "b"):
        with_engine(index, backend(name), tmp_path / folder)
    first = {p.relative_to(tmp_path / "a"): p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file()}
    second = {p.relative_to(tmp_path / "b"): p.read_bytes() for p in (tmp_path / "b").rglob("*") if p.is_file()}
    assert first == second and len(first) > 2


@pytest.mark.parametrize("name", ["exact", "chnsw", "hnswlib"])
@pytest.mark.parametrize("sizes", [(1,), (30,), (1, 1), (400, 1), (0,), (3, 2, 1), (1, 60)])
def test_small_and_empty_hierarchies(name, sizes, tmp_path):
    index, queries = index_of(3, sizes, 4)
    engine, _ = with_engine(index, backend(name), tmp_path / "a")
    exact, found = listed(index.nearest(queries, 2)), listed(engine.nearest(queries, 2))
    assert [len(layer) for layer in found] == [len(queries)] * len(sizes)
    assert found == exact
    assert [[len(row) for row in layer] for layer in found] == [[min(2, size)] * len(queries) for size in sizes]
    assert listed(engine.nearest(queries[:0], 2)) == [[]] * len(sizes)
    assert listed(engine.nearest(queries[:1], 0)) == [[[]]] * len(sizes)


def test_layers_go_by_level_from_the_finest_and_hold_what_has_a_report():
    levels = [0, 0, 1, 1, 1, 2, 2]
    assert [layer.tolist() for layer in community_layers(graph_of(levels))] == [[5, 6], [2, 3, 4], [0, 1]]
    assert [layer.tolist() for layer in community_layers(graph_of(levels, {0, 3, 6}))] == [[5], [2, 4], [1]]
    assert [layer.tolist() for layer in community_layers(graph_of(levels, {5, 6}))] == [[2, 3, 4], [0, 1]]
    assert community_layers(graph_of(levels, range(7))) == []
    assert community_layers(graph_of(levels, reports=False)) == []
    assert community_layers(graph_of([])) == []


@pytest.mark.parametrize("name", ["exact", "chnsw", "hnswlib"])
def test_a_community_without_a_report_is_never_found(name, tmp_path):
    rng = np.random.default_rng(4)
    levels, failed = [0] * 40 + [1] * 80, set(range(0, 120, 3))
    graph = graph_of(levels, failed)
    nodes, communities = NodeVectors(unit(rng, 50), None), CommunityVectors(unit(rng, 120), None)
    index = HierarchyIndex(nodes, communities, community_layers(graph))
    engine, _ = with_engine(index, backend(name), tmp_path / "a")
    queries = communities.matrix[sorted(failed)]  # each is nearest to one that is not there
    _, *layers = listed(engine.nearest(queries, 3))
    assert not {i for layer in layers for row in layer for i, _ in row} & failed
    assert all(levels[i] == 1 - at for at, layer in enumerate(layers) for row in layer for i, _ in row)
