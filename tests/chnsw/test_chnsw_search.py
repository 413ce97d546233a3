"""What `chnsw.Index` finds, against exact search."""

import chnsw
import numpy as np
import pytest

SIZES = [6000, 1500, 300, 40, 5]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("metric", ["ip", "l2", "cosine"])
def test_every_layer_is_searched_well(tree, recall, distances, metric, dtype):
    layers, queries = tree(SIZES, 40)
    if metric != "ip":  # lengths matter to l2 and must not to cosine
        layers = [layer * np.linspace(0.7, 1.4, len(layer), dtype=np.float32)[:, None] for layer in layers]
    index = chnsw.Index(40, metric, dtype=dtype, exact_below=0)
    index.build(layers, threads=2)
    found = index.search(queries, 5, ef=60)
    assert len(found) == len(SIZES)
    for layer, (ids, dists) in zip(layers, found, strict=True):
        assert ids.shape == dists.shape == (40, 5)
        assert ids.dtype == np.int64
        assert dists.dtype == np.float32
        assert recall(metric, queries, layer, ids) >= 0.99
        assert np.allclose(dists, np.take_along_axis(distances(metric, queries, layer), ids, 1), atol=1e-5)
        pairs = [list(zip(d, i, strict=True)) for d, i in zip(dists.tolist(), ids.tolist(), strict=True)]
        assert all(row == sorted(row) for row in pairs)


@pytest.mark.parametrize("metric", ["ip", "l2", "cosine"])
def test_exact_layers_are_exact(tree, distances, metric):
    layers, queries = tree([700, 90, 7], 19)
    index = chnsw.Index(19, metric, exact_below=1000)
    index.build(layers)
    for layer, (ids, dists) in zip(layers, index.search(queries, 7, ef=1), strict=True):
        want = np.sort(distances(metric, queries, layer), axis=1)[:, :7]
        assert np.allclose(dists, want, atol=1e-6)
        assert np.allclose(np.take_along_axis(distances(metric, queries, layer), ids, 1), want, atol=1e-6)


@pytest.mark.parametrize("exact_below", [0, 500])
def test_one_by_one_is_the_same_as_a_batch(tree, exact_below):
    layers, queries = tree(SIZES, 24, queries=30)
    index = chnsw.Index(24, "cosine", exact_below=exact_below)
    index.build(layers)
    batch = index.search(queries, 4, ef=20, threads=2)
    for q, query in enumerate(queries):
        for (ids, dists), (one_ids, one_dists) in zip(batch, index.search(query, 4, ef=20), strict=True):
            assert ids[q].tolist() == one_ids[0].tolist()
            assert dists[q].tolist() == one_dists[0].tolist()


def test_missing_neighbours_are_padded(tree):
    layers, queries = tree([50, 8, 1], 12)
    index = chnsw.Index(12)
    index.build(layers)
    for exact in (True, False):
        if not exact:
            index = chnsw.Index(12, exact_below=0)
            index.build(layers)
        found = index.search(queries, 10)
        assert (found[0][0] >= 0).all()
        assert sorted(found[1][0][0, :8].tolist()) == list(range(8))
        assert (found[1][0][:, 8:] == -1).all()
        assert np.isinf(found[1][1][:, 8:]).all()
        assert (found[2][0] == [0] + [-1] * 9).all()


def test_layers_can_be_chosen(tree):
    layers, queries = tree(SIZES, 16)
    index = chnsw.Index(16, exact_below=0)
    index.build(layers)
    two = index.search(queries, 3, layers=[3, 1])
    assert [ids.max() < size for (ids, _), size in zip(two, (40, 1500), strict=True)] == [True, True]
    ids, dists = index.search_layer(3, queries, 3)
    assert ids.tolist() == two[0][0].tolist()
    assert dists.tolist() == two[0][1].tolist()
    assert index.search(queries, 3, layers=[]) == []


def test_a_single_layer_has_entries_of_its_own(tree, recall):
    layers, queries = tree([9000, 2000, 400, 60], 32)
    index = chnsw.Index(32, "l2")
    index.build(layers[:1])
    assert index.stats()["hidden_levels"] > 0
    ids, _ = index.search_layer(0, queries, 10, ef=80)
    assert recall("l2", queries, layers[0], ids) >= 0.99
    assert index.stats()["search"]["distances_per_query"] < 3000
    assert index.layers == [9000]
    assert len(index) == 9000


def test_a_small_layer_above_a_large_one(tree, recall):
    layers, queries = tree([6000, 1500, 300, 40, 5], 24)
    index = chnsw.Index(24, "ip")
    index.build([layers[0], layers[4]])
    assert index.stats()["hidden_levels"] > 0
    below = layers[4] @ layers[0].T
    for i in range(5):
        assert index.links(1, i).tolist() == [int(below[i].argmax())]
    assert recall("ip", queries, layers[0], index.search(queries, 5, ef=60)[0][0]) >= 0.99


def test_equal_distances_come_by_id():
    rows = np.zeros((200, 4), np.float32)
    rows[:, 0] = 1
    index = chnsw.Index(4, "l2")
    index.build([rows])
    ids, dists = index.search_layer(0, rows[:2], 200)
    assert ids.tolist() == [list(range(200))] * 2
    assert (dists == 0).all()


def test_an_empty_batch(tree):
    layers, _ = tree([100, 10], 8)
    index = chnsw.Index(8)
    index.build(layers)
    found = index.search(np.zeros((0, 8), np.float32), 3)
    assert [ids.shape for ids, _ in found] == [(0, 3), (0, 3)]


def test_simd_kinds_agree(tree):
    layers, queries = tree([3000, 400, 20], 50)
    kinds = []
    for kind in ("portable", "avx2", "avx512"):
        try:
            assert chnsw.simd(kind) == kind
        except ValueError:
            continue
        kinds.append(kind)
    found = {}
    try:
        for dtype in ("float32", "float16", "int8"):
            for metric in ("ip", "l2"):
                for kind in kinds:
                    chnsw.simd(kind)
                    index = chnsw.Index(50, metric, dtype=dtype, exact_below=100)
                    index.build(layers)
                    found[kind] = index.search(queries, 5, ef=80)
                for kind in kinds[1:]:
                    for (a, da), (b, db) in zip(found["portable"], found[kind], strict=True):
                        assert np.allclose(da, db, atol=1e-5)
                        assert (a == b).mean() > 0.99
    finally:
        chnsw.simd("auto")


def test_distances_are_counted(tree):
    layers, queries = tree(SIZES, 16)
    index = chnsw.Index(16, exact_below=50)
    index.build(layers)
    index.search(queries, 5, ef=10)
    search = index.stats()["search"]
    assert search["queries"] == 40
    assert search["exact_distances"] == 40 * (40 + 5)
    assert search["distances"] == search["exact_distances"] + search["graph_distances"]
    few = search["graph_distances"]
    index.search(queries, 5, ef=100)
    assert index.stats()["search"]["graph_distances"] > few


def test_a_large_batch_on_data_without_structure_is_searched_exactly(recall):
    rng = np.random.default_rng(0)
    rows, queries = (rng.standard_normal((n, 64)).astype(np.float32) for n in (3000, 200))
    for exact_below, exact in ((0, False), (300, True)):
        index = chnsw.Index(64, "l2", exact_below=exact_below)
        index.build([rows])
        ids, _ = index.search_layer(0, queries, 5, ef=100)
        assert (index.stats()["search"]["exact_distances"] >= 200 * 3000) is exact
        if exact:
            assert recall("l2", queries, rows, ids) == 1
        one = index.search_layer(0, queries[:1], 5, ef=100)
        assert recall("l2", queries[:1], rows, one[0]) > 0.5
        assert index.stats()["search"]["exact_distances"] < 3000  # the entries above alone
